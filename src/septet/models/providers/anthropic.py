"""A client of the Anthropic messages API: encodes requests, and reads answers from events."""

import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from septet.domain.messages import Answer, Delta, Message, Request, StopReason, ToolCall, Usage
from septet.models.credentials import Credentials, header
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
REPLY_TOOL = "reply"
"""The tool that a model must call to answer by a schema: its input is the answer."""
MAX_TOKENS = 64_000
"""The API requires a limit; a model with a lower maximum rejects it and names its own."""
MODEL_MAXIMUM = re.compile(r"max_tokens: \d+ > (\d+)")
CACHE_CONTROL = {"type": "ephemeral"}
STOPS: dict[str, StopReason] = {"max_tokens": "length", "model_context_window_exceeded": "length"}

Fields = dict[str, object]


class AnthropicUsage(Struct):
    input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens: int | None = None


class StartedMessage(Struct):
    model: str = ""
    usage: msgspec.Raw = msgspec.Raw()


class ContentBlock(Struct):
    type: str
    id: str = ""
    name: str = ""
    text: str = ""
    data: str = ""


class AnthropicDelta(Struct):
    """A delta of a block or of the message: only the fields of its kind are set."""

    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class Event(Struct):
    type: str
    index: int = 0
    message: StartedMessage | None = None
    content_block: ContentBlock | None = None
    delta: AnthropicDelta | None = None
    usage: msgspec.Raw = msgspec.Raw()
    error: ErrorBody | None = None


EVENTS = msgspec.json.Decoder(Event)


class AnthropicReader:
    """Builds an answer from its events."""

    def __init__(self) -> None:
        self.is_complete = False
        self.parts = AnswerParts()
        self._calls: dict[int, tuple[ContentBlock, list[str]]] = {}
        self._thoughts: dict[int, Fields] = {}
        self._stop: str | None = None
        self._usage = AnthropicUsage()
        self._model = ""

    def feed(self, data: bytes) -> None:
        """Read the data of one event. Raises a fault if it is not valid in this API."""
        try:
            event = EVENTS.decode(data)
        except DECODE_ERRORS as error:
            raise InvalidAnswer(f"an event of the answer cannot be read ({error})") from error
        if event.error is not None:
            raise fault_in_stream(event.error)
        if event.delta is not None:
            self._take_delta(event.index, event.delta)
        if event.content_block is not None:
            self._take_block(event.index, event.content_block)
        if event.message is not None:
            self._model = event.message.model
            self._take_usage(event.message.usage)
        self._take_usage(event.usage)
        self.is_complete = event.type == "message_stop"

    def _take_block(self, index: int, block: ContentBlock) -> None:
        if block.type == "tool_use":
            self._calls[index] = (block, [])
        elif block.type == "redacted_thinking":
            self._thoughts[index] = {"type": block.type, "data": block.data}
        elif block.text:
            self.parts.add(self.parts.texts, block.text)

    def _take_delta(self, index: int, delta: AnthropicDelta) -> None:
        if delta.text:
            self.parts.add(self.parts.texts, delta.text)
        if delta.thinking:
            self.parts.add(self.parts.reasons, delta.thinking)
        if delta.thinking or delta.signature:
            self._take_thought(index, delta)
        if delta.partial_json and index in self._calls:
            self.parts.add(self._calls[index][1], delta.partial_json)
        self._stop = delta.stop_reason or self._stop

    def _take_thought(self, index: int, delta: AnthropicDelta) -> None:
        block = self._thoughts.setdefault(index, {"type": "thinking", "thinking": "", "signature": ""})
        block["thinking"] = f"{block['thinking']}{delta.thinking}"
        block["signature"] = f"{block['signature']}{delta.signature}"

    def _replay(self) -> str:
        """The thinking blocks unchanged, to send back; the API rejects one without a signature."""
        blocks = [block for _, block in sorted(self._thoughts.items()) if block.get("signature", True)]
        return ENCODER.encode(blocks).decode() if blocks else ""

    def _take_usage(self, raw: msgspec.Raw) -> None:
        """Later counts replace earlier ones, field by field; invalid ones are ignored, so that no answer is lost."""
        try:
            usage = msgspec.json.decode(raw, type=AnthropicUsage | None) if raw else None
        except DECODE_ERRORS:
            return
        for field in AnthropicUsage.__struct_fields__ if usage is not None else ():
            if (count := getattr(usage, field)) is not None:
                setattr(self._usage, field, count)

    def answer(self, model: str, seconds: float) -> Answer:
        """The complete answer. Raises a fault if it is not valid."""
        if self._stop is None:
            raise InvalidAnswer("the stream ended without a stop reason")
        if self._stop == "refusal":
            raise ContentFiltered("the provider's filter refused to answer")
        calls = [
            ToolCall(id=block.id, name=block.name, arguments="".join(parts) or "{}")
            for _, (block, parts) in sorted(self._calls.items())
        ]
        replies = [call.arguments for call in calls if call.name == REPLY_TOOL]
        text = replies[0] if replies else "".join(self.parts.texts)
        others = tuple(call for call in calls if call.name != REPLY_TOOL)
        answer = self.parts.answer(text, self._model or model, others, STOPS.get(self._stop, "finished"))
        replay = self._replay() if others else ""
        return replace(answer, usage=anthropic_usage(self._usage), seconds=seconds, replay=replay)


def anthropic_usage(counts: AnthropicUsage) -> Usage:
    """Anthropic counts cached tokens separately from the input; we include them."""
    cached = counts.cache_read_input_tokens or 0
    prompt = (counts.input_tokens or 0) + cached + (counts.cache_creation_input_tokens or 0)
    return Usage(prompt=prompt, cached=cached, completion=counts.output_tokens or 0)


def blocks_of(message: Message, images: Sequence[EncodedImage]) -> list[Fields]:
    """The content blocks of a message."""
    image_blocks: list[Fields] = [
        {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.base64}}
        for image in images
    ]
    text_blocks: list[Fields] = [{"type": "text", "text": message.text}] if message.text else []
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.call, "content": text_blocks + image_blocks}]
    call_blocks: list[Fields] = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": parse_arguments(call.arguments)}
        for call in message.calls
    ]
    return (thoughts_of(message) + text_blocks + image_blocks + call_blocks) or [
        {"type": "text", "text": "(nothing)"}
    ]


def thoughts_of(message: Message) -> list[Fields]:
    """The thinking blocks that led to the calls; empty if they came from another API."""
    try:
        return msgspec.json.decode(message.replay, type=list[Fields]) if message.replay else []
    except DECODE_ERRORS:
        return []


def parse_arguments(arguments: str) -> Fields:
    """The arguments as an object, which this API requires; text that is not a JSON object is quoted."""
    try:
        return msgspec.json.decode(arguments or "{}", type=Fields)
    except msgspec.MsgspecError:
        return {"unreadable": arguments}


def wire_role(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"


def anthropic_options(request: Request, model: str, max_tokens: int) -> Fields:
    """All fields of a request but its messages; the system prompt is marked for the cache."""
    fields: Fields = {"model": model, "stream": True, "max_tokens": max_tokens}
    system = [message.text for message in request.messages if message.role == "system" and message.text]
    if system:
        fields["system"] = [{"type": "text", "text": "\n\n".join(system), "cache_control": CACHE_CONTROL}]
    if request.temperature is not None:
        fields["temperature"] = min(1.0, request.temperature)
    tools: list[Fields] = [
        {"name": offer.name, "description": offer.description, "input_schema": offer.parameters}
        for offer in request.tools
    ]
    if request.schema is not None:
        tools.append({"name": REPLY_TOOL, "description": "Answer.", "input_schema": request.schema})
        only: Fields = {"type": "tool", "name": REPLY_TOOL}
        fields["tool_choice"] = {"type": "any"} if request.tools else only
    if tools:
        fields["tools"] = tools
    return fields


def cache_marks(messages: Sequence[Message]) -> set[int]:
    """The indices of messages to mark for the cache: the ends of this request and of the one before it.

    The service looks back only a few blocks from a mark for cached content, and parallel calls are many blocks.
    """
    answers = [index for index, message in enumerate(messages[:-1]) if message.role == "assistant"]
    before = {answers[-1] - 1} if answers and answers[-1] else set[int]()
    return before | {len(messages) - 1} if messages else set()


API_VERSION = "2023-06-01"


class AnthropicModel:
    """`url` is the full address of the messages endpoint; `load` reads images by their blob address."""

    def __init__(
        self, url: str, model: str, credentials: Credentials, http: HttpClient, load: LoadBlob | None = None
    ) -> None:
        self._url = url
        self._model = model
        self._credentials = credentials
        self._http = http
        self._load = load
        self._maximum = 0
        """The model's maximum of tokens per answer; 0 until a rejection names it."""
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
            self._learn_maximum(rejection)

    def _learn_maximum(self, rejection: RequestRejected) -> None:
        """Remember the model's maximum from the rejection; raise it again if it is about something else."""
        match = MODEL_MAXIMUM.search(rejection.cause)
        if match is None or self._maximum:
            raise rejection
        self._maximum = int(match[1])

    async def _ask(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        body = await self._body(request)
        headers = {"anthropic-version": API_VERSION, **await self._credentials()}
        started = time.monotonic()
        reader = AnthropicReader()
        async with (
            self._http.post(self._url, headers, body) as incoming,
            aclosing(read_deltas(incoming, reader)) as pieces,
        ):
            async for delta in pieces:
                yield delta
        yield reader.answer(self._model, time.monotonic() - started)

    async def _body(self, request: Request) -> bytes:
        messages = tuple(message for message in request.messages if message.role != "system")
        wanted = request.max_tokens or MAX_TOKENS
        max_tokens = min(wanted, self._maximum or wanted)
        head = ENCODER.encode(anthropic_options(request, self._model, max_tokens))[:-1] + b',"messages":['
        marks = cache_marks(messages)
        parts = [head, await self._history.encode(request.role, messages[: min(marks, default=0)])]
        for index in range(min(marks, default=0), len(messages)):
            before = messages[index - 1] if index else None
            parts.append(await self._content(before, messages[index], is_marked=index in marks))
        return b"".join((*parts, b"]}]}" if messages else b"]}"))

    async def _encode(self, before: Message | None, message: Message) -> bytes:
        return await self._content(before, message, is_marked=False)

    async def _content(self, before: Message | None, message: Message, is_marked: bool) -> bytes:
        """Encode the blocks of a message. Messages of one role in a row are sent as one; the next role closes it."""
        blocks = blocks_of(message, await encode_images(self._load, message))
        if is_marked:
            blocks[-1]["cache_control"] = CACHE_CONTROL
        inner = ENCODER.encode(blocks)[1:-1]
        role = wire_role(message)
        if before is not None and wire_role(before) == role:
            return b"," + inner
        opening = b'{"role":"%b","content":[' % role.encode()
        return (b"]}," if before is not None else b"") + opening + inner


ADDRESS = "https://api.anthropic.com"
DEFAULT_MODEL = "claude-sonnet-4-5"


def open_anthropic(endpoint: ModelEndpoint, connections: Connections) -> AnthropicModel:
    credentials = header("x-api-key", endpoint.key)
    url = f"{endpoint.url}/v1/messages"
    return AnthropicModel(url, endpoint.model, credentials, connections.http, connections.load_image)


def anthropic_endpoint(model: str, settings: ProviderSettings) -> ModelEndpoint:
    key = PROVIDER.key(settings)
    if not key:
        raise PROVIDER.missing_key_error()
    url = settings.variable("ANTHROPIC_BASE_URL", ADDRESS)
    return ModelEndpoint(url=url.rstrip("/").removesuffix("/v1"), model=model, key=key)


def anthropic_key_check(endpoint: ModelEndpoint) -> KeyCheck:
    headers = {"anthropic-version": API_VERSION, "x-api-key": endpoint.key}
    return KeyCheck(url=f"{endpoint.url}/v1/models", headers=headers)


PROVIDER = Provider(
    name_pattern="anthropic/NAME",
    has_tools=True,
    about="Anthropic, or a compatible server at ANTHROPIC_BASE_URL",
    open=open_anthropic,
    endpoint=anthropic_endpoint,
    key_variable="ANTHROPIC_API_KEY",
    key_check=anthropic_key_check,
    variables=(Variable(setting="url", name="ANTHROPIC_BASE_URL", default=ADDRESS),),
    default=lambda settings: PROVIDER.default_with_key(DEFAULT_MODEL, settings),
    billing=lambda model: PriceListEntry(provider="anthropic", model=model),
)
