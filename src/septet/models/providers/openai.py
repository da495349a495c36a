"""A client of the OpenAI chat-completions API: encodes requests, and reads answers from chunks."""

import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from septet.domain.messages import Answer, Delta, Message, Request, StopReason, ToolCall, ToolOffer, Usage
from septet.models.credentials import Credentials, bearer
from septet.models.encoding import EncodedImage, HistoryCache, LoadBlob, encode_images
from septet.models.faults import (
    DECODE_ERRORS,
    ContentFiltered,
    ErrorBody,
    InvalidAnswer,
    RequestRejected,
    fault_in_stream,
)
from septet.models.http import HttpClient
from septet.models.providers.provider import (
    Connections,
    KeyCheck,
    ModelEndpoint,
    PriceListEntry,
    Provider,
    ProviderSettings,
    Variable,
)
from septet.models.sse import AnswerParts, read_deltas

ENCODER = msgspec.json.Encoder()
STOPS: dict[str, StopReason] = {"length": "length", "max_tokens": "length"}


class FunctionPiece(Struct):
    name: str | None = None
    arguments: str | None = None


class CallPiece(Struct):
    index: int | None = None
    id: str | None = None
    function: FunctionPiece | None = None


class ContentPart(Struct):
    text: str = ""


class OpenAIChunk(Struct):
    content: str | list[ContentPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None


class OpenAIChoice(Struct):
    index: int | None = 0
    delta: OpenAIChunk | None = None
    message: OpenAIChunk | None = None
    finish_reason: str | None = None


class PromptDetails(Struct):
    cached_tokens: int | None = None


class OpenAIUsage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: PromptDetails | None = None


class Chunk(Struct):
    """One event of a stream, or a whole answer, which has `message` instead of `delta`."""

    choices: list[OpenAIChoice] | None = None
    usage: msgspec.Raw = msgspec.Raw()
    model: str | None = None
    error: ErrorBody | str | None = None


CHUNKS = msgspec.json.Decoder(Chunk)


class OpenAIReader:
    """Builds an answer from its chunks."""

    def __init__(self) -> None:
        self.is_complete = False
        self.parts = AnswerParts()
        self._calls: dict[int, CallParts] = {}
        self._finish: str | None = None
        self._usage: OpenAIUsage | None = None
        self._totals: list[OpenAIUsage] = []
        self._others: dict[int, list[str]] = {}
        self._reasoning_field = ""
        self._model: str | None = None

    def feed(self, data: bytes) -> None:
        """Read the data of one event. Raises a fault if it is not valid in this API."""
        if data == b"[DONE]":
            self.is_complete = True
            return
        try:
            chunk = CHUNKS.decode(data)
        except DECODE_ERRORS as error:
            raise InvalidAnswer(f"a chunk of the answer cannot be read ({error})") from error
        if chunk.error is not None:
            raise fault_in_stream(chunk.error)
        if usage := parse_usage(chunk.usage):
            self._usage = usage
            self._totals += [usage] if not chunk.choices else []
        # Several choices may come in any order. Only the first is shown while it comes.
        for choice in chunk.choices or ():
            if not choice.index:
                self._take_choice(choice)
                self._model = chunk.model or self._model
            elif (piece := choice.delta or choice.message) and piece.content:
                self.parts.add(self._others.setdefault(choice.index, []), plain_text(piece.content))

    def _take_choice(self, choice: OpenAIChoice) -> None:
        piece = choice.delta or choice.message
        if choice.finish_reason:
            self._finish = choice.finish_reason
        if piece is None:
            return
        if piece.content:
            self.parts.add(self.parts.texts, plain_text(piece.content))
        if thought := piece.reasoning_content or piece.reasoning:
            self._reasoning_field = "reasoning_content" if piece.reasoning_content else "reasoning"
            self.parts.add(self.parts.reasons, thought)
        if piece.refusal:
            self.parts.add(self.parts.texts, piece.refusal)
        for call in piece.tool_calls or ():
            self._take_call(call)

    def _take_call(self, piece: CallPiece) -> None:
        # Some servers omit the index: then a piece with an id begins a new call, and one without continues the last.
        index = piece.index if piece.index is not None else len(self._calls) - (0 if piece.id else 1)
        call = self._calls.setdefault(max(0, index), CallParts())
        call.id = call.id or piece.id or ""
        if piece.function is not None:
            call.name = call.name or piece.function.name or ""
            self.parts.add(call.arguments, piece.function.arguments or "")

    def answer(self, model: str, seconds: float) -> Answer:
        """The complete answer. Raises a fault if it is not valid."""
        if self._finish is None:
            raise InvalidAnswer("the stream ended without a finish reason")
        if self._finish == "content_filter":
            raise ContentFiltered("the provider's content filter stopped the answer")
        calls = tuple(
            ToolCall(id=call.id or f"call_{index}", name=call.name, arguments="".join(call.arguments))
            for index, call in sorted(self._calls.items())
        )
        text = "".join(self.parts.texts)
        answer = self.parts.answer(text, self._model or model, calls, STOPS.get(self._finish, "finished"))
        replay = reasoning_replay(self._reasoning_field, answer)
        others = tuple("".join(pieces) for _, pieces in sorted(self._others.items()))
        usage = openai_usage(self._usage) if not others else usage_of_several(self._totals or [self._usage])
        return replace(answer, usage=usage, seconds=seconds, replay=replay, others=others)


def plain_text(content: str | list[ContentPart]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)


def usage_of_several(counts: Sequence[OpenAIUsage | None]) -> Usage:
    """Of several answers to one prompt: one total, or, as llama.cpp sends it, a count for each answer."""
    each = [openai_usage(one) for one in counts]
    first = max(each, key=lambda one: one.prompt)
    return replace(first, completion=sum(one.completion for one in each))


def reasoning_replay(field: str, answer: Answer) -> str:
    """Servers that send reasoning expect it back, in the same field, with the calls that it led to."""
    return ENCODER.encode({field: answer.reasoning}).decode() if field and answer.calls else ""


class CallParts:
    """A tool call while its pieces arrive."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


def parse_usage(raw: msgspec.Raw) -> OpenAIUsage | None:
    """The server's token counts; None if they are absent or invalid, so that no answer is lost."""
    try:
        return msgspec.json.decode(raw, type=OpenAIUsage | None) if raw else None
    except DECODE_ERRORS:
        return None


def openai_usage(counts: OpenAIUsage | None) -> Usage:
    if counts is None:
        return Usage()
    details = counts.prompt_tokens_details
    cached = details.cached_tokens if details is not None else None
    return Usage(prompt=counts.prompt_tokens, cached=cached or 0, completion=counts.completion_tokens)


class WireFunction(Struct):
    name: str
    arguments: str


class WireCall(Struct):
    id: str
    function: WireFunction
    type: str = "function"


class WireMessage(Struct):
    role: str
    content: str | list[dict[str, object]] | None
    tool_calls: list[WireCall] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET


class Reasoning(Struct, forbid_unknown_fields=True):
    """Reasoning in either of the fields that servers use for it."""

    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET


def reasoning_of(message: Message, quirks: frozenset[str]) -> Reasoning:
    """The reasoning to send back; empty if it came from another API or the server rejects it."""
    try:
        reasoning = msgspec.json.decode(message.replay, type=Reasoning) if message.replay else Reasoning()
    except DECODE_ERRORS:
        return Reasoning()
    return Reasoning() if REASONING_FIELDS & quirks else reasoning


def message_bytes(
    message: Message, images: list[EncodedImage], quirks: frozenset[str] = frozenset()
) -> bytes:
    reasoning = reasoning_of(message, quirks)
    calls = [
        WireCall(id=call.id, function=WireFunction(name=call.name, arguments=call.arguments or "{}"))
        for call in message.calls
    ]
    wire_message = WireMessage(
        role=message.role,
        content=wire_content(message, images),
        tool_calls=calls or UNSET,
        tool_call_id=message.call or UNSET,
        reasoning_content=reasoning.reasoning_content,
        reasoning=reasoning.reasoning,
    )
    return ENCODER.encode(wire_message)


def wire_content(message: Message, images: list[EncodedImage]) -> str | list[dict[str, object]] | None:
    if not images:
        return message.text or (None if message.calls else "")
    parts: list[dict[str, object]] = [{"type": "text", "text": message.text}] if message.text else []
    for image in images:
        address = f"data:{image.media_type};base64,{image.base64}"
        parts.append({"type": "image_url", "image_url": {"url": address}})
    return parts


def openai_options(request: Request, model: str, quirks: frozenset[str]) -> dict[str, object]:
    """All fields of a request but its messages; `quirks` are parameters that this server rejects."""
    fields: dict[str, object] = {"model": model, "stream": True}
    if "stream_options" not in quirks:
        fields["stream_options"] = {"include_usage": True}
    if request.temperature is not None and "temperature" not in quirks:
        fields["temperature"] = request.temperature
    if request.max_tokens is not None:
        fields["max_completion_tokens" if "max_tokens" in quirks else "max_tokens"] = request.max_tokens
    if request.draws > 1 and DRAWS not in quirks:
        fields[DRAWS] = request.draws
    if request.thread and CACHE_KEY not in quirks:
        fields[CACHE_KEY] = request.thread
    if request.tools:
        fields["tools"] = [wire_tool(offer) for offer in request.tools]
    if request.schema is not None:
        schema = {"name": "reply", "schema": request.schema, "strict": is_strict(request.schema)}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    return fields


def wire_tool(offer: ToolOffer) -> dict[str, object]:
    function = {"name": offer.name, "description": offer.description, "parameters": offer.parameters}
    return {"type": "function", "function": function}


def is_strict(schema: object) -> bool:
    """Whether a schema follows OpenAI's rules for strict mode: closed objects whose fields are all required."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in msgspec.convert(schema, list[object]))
    if not isinstance(schema, dict):
        return True
    fields = msgspec.convert(schema, dict[str, object])
    return is_strict_schema(fields) and all(is_strict(part) for part in fields.values())


def is_strict_schema(fields: dict[str, object]) -> bool:
    if fields.get("type") != "object":
        return True
    properties = msgspec.convert(fields.get("properties", {}), dict[str, object])
    required = msgspec.convert(fields.get("required", []), list[str])
    return fields.get("additionalProperties") is False and set(properties) == set(required)


CACHE_KEY = "prompt_cache_key"
DRAWS = "n"
REASONING_FIELDS = frozenset({"reasoning_content", "reasoning"})
OPTIONAL = {
    name: re.compile(rf"\b{name}\b")
    for name in (
        "stream_options",
        "temperature",
        "max_tokens",
        CACHE_KEY,
        *sorted(REASONING_FIELDS, reverse=True),
    )
} | {DRAWS: re.compile(r"\bn(_cmpl)?\b|number of (completions|choices)")}
"""Optional parameters that some servers reject, and how they are named in the error."""


class OpenAIModel:
    """`url` is the full address of the chat-completions endpoint; `load` reads images by their blob address.

    `quirks` are parameters that the server is known to reject.
    """

    def __init__(
        self,
        url: str,
        model: str,
        credentials: Credentials,
        http: HttpClient,
        load: LoadBlob | None = None,
        quirks: frozenset[str] = frozenset(),
    ) -> None:
        self._url = url
        self._model = model
        self._credentials = credentials
        self._http = http
        self._load = load
        self._quirks = quirks
        self._history = HistoryCache(self._encode)

    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        while True:
            try:
                async with aclosing(self._ask(request)) as items:
                    async for item in items:
                        yield item
                return
            except RequestRejected as error:
                rejection = error
            # A rejected request has yielded nothing yet, so asking again repeats nothing.
            self._learn_quirk(rejection)

    def _learn_quirk(self, rejection: RequestRejected) -> None:
        """Remember the parameter that the server rejects; raise it again if it is about something else."""
        quirk = next(
            (
                name
                for name, words in OPTIONAL.items()
                if name not in self._quirks and words.search(rejection.cause)
            ),
            None,
        )
        if quirk is None:
            raise rejection
        self._quirks |= {quirk}
        self._history = HistoryCache(self._encode)

    async def _ask(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        body = await self._body(request)
        headers = await self._credentials()
        started = time.monotonic()
        reader = OpenAIReader()
        async with (
            self._http.post(self._url, headers, body) as incoming,
            aclosing(read_deltas(incoming, reader)) as pieces,
        ):
            async for delta in pieces:
                yield delta
        yield reader.answer(self._model, time.monotonic() - started)

    async def _body(self, request: Request) -> bytes:
        messages = await self._history.encode(request.role, request.messages)
        fields = ENCODER.encode(openai_options(request, self._model, self._quirks))
        return b"".join((fields[:-1], b',"messages":[', messages, b"]}"))

    async def _encode(self, before: Message | None, message: Message) -> bytes:
        encoded = message_bytes(message, await encode_images(self._load, message), self._quirks)
        return encoded if before is None else b"," + encoded


ADDRESS = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-5-mini"


def open_openai(endpoint: ModelEndpoint, connections: Connections) -> OpenAIModel:
    url = f"{endpoint.url}/chat/completions"
    return OpenAIModel(url, endpoint.model, bearer(endpoint.key), connections.http, connections.load_image)


def openai_endpoint(model: str, settings: ProviderSettings) -> ModelEndpoint:
    """A key is required only at OpenAI's own address."""
    url, key = settings.variable("OPENAI_BASE_URL", ADDRESS), PROVIDER.key(settings)
    if not key and url == ADDRESS:
        raise PROVIDER.missing_key_error()
    return ModelEndpoint(url=url.rstrip("/"), model=model, key=key)


def openai_key_check(endpoint: ModelEndpoint) -> KeyCheck:
    return KeyCheck(url=f"{endpoint.url}/models", headers={"Authorization": f"Bearer {endpoint.key}"})


PROVIDER = Provider(
    name_pattern="openai/NAME",
    has_tools=True,
    about="OpenAI, or a compatible server at OPENAI_BASE_URL",
    open=open_openai,
    endpoint=openai_endpoint,
    key_variable="OPENAI_API_KEY",
    key_check=openai_key_check,
    variables=(Variable(setting="url", name="OPENAI_BASE_URL", default=ADDRESS),),
    default=lambda settings: PROVIDER.default_with_key(DEFAULT_MODEL, settings),
    billing=lambda model: PriceListEntry(provider="openai", model=model),
    has_embeddings=True,
)
