"""The Anthropic messages wire, from the client's side: requests to bytes, events to an answer."""

import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from septet.domain.messages import Answer, Delta, Message, Request, StopReason, ToolCall, Usage
from septet.models.credentials import Credentials, header
from septet.models.encoding import EncodedImage, HistoryCache, Loader, encoded_images
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
    Endpoint,
    PriceListEntry,
    Provider,
    ProviderSettings,
    Variable,
)
from septet.models.sse import AnswerParts, read_deltas

ENCODER = msgspec.json.Encoder()
REPLY_TOOL = "reply"
"""The tool that a model must use to answer by a schema: its input is the answer."""
MAX_TOKENS = 64_000
"""How long an answer may be, for this wire wants a figure; a model whose longest is shorter says so."""
MAXIMUM = re.compile(r"max_tokens: \d+ > (\d+)")
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
    """A delta of a block or of the message, whichever of its fields are there."""

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
    """Gathers an answer from its events."""

    def __init__(self) -> None:
        self.is_complete = False
        self.parts = AnswerParts()
        self._calls: dict[int, tuple[ContentBlock, list[str]]] = {}
        self._thoughts: dict[int, Fields] = {}
        self._stop: str | None = None
        self._usage = AnthropicUsage()
        self._model = ""

    def feed(self, data: bytes) -> None:
        """Read one event's data. Raises a fault if it is none of this wire."""
        try:
            event = EVENTS.decode(data)
        except DECODE_ERRORS as error:
            raise InvalidAnswer(f"an event of the answer cannot be read ({error})") from error
        if event.error is not None:
            raise fault_in_stream(event.error)
        if event.delta is not None:
            self._take_change(event.index, event.delta)
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

    def _take_change(self, index: int, change: AnthropicDelta) -> None:
        if change.text:
            self.parts.add(self.parts.texts, change.text)
        if change.thinking:
            self.parts.add(self.parts.reasons, change.thinking)
        if change.thinking or change.signature:
            self._take_thought(index, change)
        if change.partial_json and index in self._calls:
            self.parts.add(self._calls[index][1], change.partial_json)
        self._stop = change.stop_reason or self._stop

    def _take_thought(self, index: int, change: AnthropicDelta) -> None:
        block = self._thoughts.setdefault(index, {"type": "thinking", "thinking": "", "signature": ""})
        block["thinking"] = f"{block['thinking']}{change.thinking}"
        block["signature"] = f"{block['signature']}{change.signature}"

    def _replay(self) -> str:
        """The thoughts as they came; one without a signature would not be taken back."""
        blocks = [block for _, block in sorted(self._thoughts.items()) if block.get("signature", True)]
        return ENCODER.encode(blocks).decode() if blocks else ""

    def _take_usage(self, raw: msgspec.Raw) -> None:
        """Later figures replace earlier ones, field by field; for nonsense no answer is lost."""
        try:
            usage = msgspec.json.decode(raw, type=AnthropicUsage | None) if raw else None
        except DECODE_ERRORS:
            return
        for field in AnthropicUsage.__struct_fields__ if usage is not None else ():
            if (count := getattr(usage, field)) is not None:
                setattr(self._usage, field, count)

    def answer(self, model: str, seconds: float) -> Answer:
        """The whole answer, if it is one."""
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


def anthropic_usage(piece: AnthropicUsage) -> Usage:
    """Anthropic counts what it read from the cache apart from the input; we count it in."""
    cached = piece.cache_read_input_tokens or 0
    prompt = (piece.input_tokens or 0) + cached + (piece.cache_creation_input_tokens or 0)
    return Usage(prompt=prompt, cached=cached, completion=piece.output_tokens or 0)


def blocks_of(message: Message, images: Sequence[EncodedImage]) -> list[Fields]:
    """The content blocks of a message."""
    pictures: list[Fields] = [
        {"type": "image", "source": {"type": "base64", "media_type": image.kind, "data": image.text}}
        for image in images
    ]
    texts: list[Fields] = [{"type": "text", "text": message.text}] if message.text else []
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.call, "content": texts + pictures}]
    uses: list[Fields] = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": parse_arguments(call.arguments)}
        for call in message.calls
    ]
    return (thoughts_of(message) + texts + pictures + uses) or [{"type": "text", "text": "(nothing)"}]


def thoughts_of(message: Message) -> list[Fields]:
    """The thinking that led to the calls, as it came; nothing of another wire."""
    try:
        return msgspec.json.decode(message.replay, type=list[Fields]) if message.replay else []
    except DECODE_ERRORS:
        return []


def parse_arguments(arguments: str) -> Fields:
    """This wire wants an object where ours keeps the text; what is none is shown as it came."""
    try:
        return msgspec.json.decode(arguments or "{}", type=Fields)
    except msgspec.MsgspecError:
        return {"unreadable": arguments}


def wire_role(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"


def anthropic_options(request: Request, model: str, max_tokens: int) -> Fields:
    """Everything of a request but its messages; the system text is marked as worth keeping in the cache."""
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


def cache_marks(said: Sequence[Message]) -> set[int]:
    """The ends of this request and of the one before it.

    The service looks for what it has kept only a few blocks back from a mark, and parallel calls are many blocks.
    """
    answers = [place for place, message in enumerate(said[:-1]) if message.role == "assistant"]
    before = {answers[-1] - 1} if answers and answers[-1] else set[int]()
    return before | {len(said) - 1} if said else set()


API_VERSION = "2023-06-01"


class AnthropicModel:
    """`url` is the whole address of the messages; `load` gives images by their blob address."""

    def __init__(
        self, url: str, model: str, credentials: Credentials, http: HttpClient, load: Loader | None = None
    ) -> None:
        self._url = url
        self._model = model
        self._credentials = credentials
        self._http = http
        self._load = load
        self._maximum = 0
        """The model's longest answer, once it has said so."""
        self._history = HistoryCache(self._encode)

    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        while True:
            try:
                async with aclosing(self._ask(request)) as items:
                    async for item in items:
                        yield item
                return
            except RequestRejected as refused:
                refusal = refused
            # Outside of the handler: nothing has been yielded yet, so asking again repeats nothing.
            self._learn_maximum(refusal)

    def _learn_maximum(self, refusal: RequestRejected) -> None:
        """Remember how long the model's answers may be, or give up."""
        found = MAXIMUM.search(refusal.cause)
        if found is None or self._maximum:
            raise refusal
        self._maximum = int(found[1])

    async def _ask(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        body = await self._body(request)
        headers = {"anthropic-version": API_VERSION, **await self._credentials()}
        started = time.monotonic()
        reading = AnthropicReader()
        async with (
            self._http.post(self._url, headers, body) as incoming,
            aclosing(read_deltas(incoming, reading)) as pieces,
        ):
            async for delta in pieces:
                yield delta
        yield reading.answer(self._model, time.monotonic() - started)

    async def _body(self, request: Request) -> bytes:
        said = tuple(message for message in request.messages if message.role != "system")
        wanted = request.max_tokens or MAX_TOKENS
        longest = min(wanted, self._maximum or wanted)
        head = ENCODER.encode(anthropic_options(request, self._model, longest))[:-1] + b',"messages":['
        marks = cache_marks(said)
        parts = [head, await self._history.encode(request.role, said[: min(marks, default=0)])]
        for place in range(min(marks, default=0), len(said)):
            before = said[place - 1] if place else None
            parts.append(await self._content(before, said[place], kept=place in marks))
        return b"".join((*parts, b"]}]}" if said else b"]}"))

    async def _encode(self, before: Message | None, message: Message) -> bytes:
        return await self._content(before, message, kept=False)

    async def _content(self, before: Message | None, message: Message, kept: bool) -> bytes:
        """The blocks of a message; those of one speaker in a row are one message, closed by the next."""
        blocks = blocks_of(message, await encoded_images(self._load, message))
        if kept:
            blocks[-1]["cache_control"] = CACHE_CONTROL
        inner = ENCODER.encode(blocks)[1:-1]
        who = wire_role(message)
        if before is not None and wire_role(before) == who:
            return b"," + inner
        opening = b'{"role":"%b","content":[' % who.encode()
        return (b"]}," if before is not None else b"") + opening + inner


ADDRESS = "https://api.anthropic.com"
DEFAULT_MODEL = "claude-sonnet-4-5"


def open_anthropic(endpoint: Endpoint, connections: Connections) -> AnthropicModel:
    credentials = header("x-api-key", endpoint.key)
    url = f"{endpoint.url}/v1/messages"
    return AnthropicModel(url, endpoint.model, credentials, connections.http, connections.load_image)


def anthropic_endpoint(model: str, settings: ProviderSettings) -> Endpoint:
    key = PROVIDER.key(settings)
    if not key:
        raise PROVIDER.missing_key()
    url = settings.variable("ANTHROPIC_BASE_URL", ADDRESS)
    return Endpoint(url=url.rstrip("/").removesuffix("/v1"), model=model, key=key)


PROVIDER = Provider(
    form="anthropic/NAME",
    has_tools=True,
    about="Anthropic, or a server of its wire at ANTHROPIC_BASE_URL",
    open=open_anthropic,
    endpoint=anthropic_endpoint,
    key_variable="ANTHROPIC_API_KEY",
    variables=(Variable(setting="url", name="ANTHROPIC_BASE_URL", default=ADDRESS),),
    default=lambda settings: PROVIDER.default_with_key(DEFAULT_MODEL, settings),
    billing=lambda model: PriceListEntry(provider="anthropic", model=model),
)
