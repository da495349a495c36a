"""Answers that come by a provider's own library, within the same bounds as all others."""

import inspect
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable
from contextlib import contextmanager

import anyio
import httpx2
import msgspec
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model as Inner
from pydantic_ai.models import ModelRequestParameters, create_async_httpx2_client, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from septet.domain.messages import Answer, Delta, Message, Request, StopReason, ToolCall, ToolOffer, Usage
from septet.errors import BadConfig, NoModel
from septet.models.encoding import Loader, load_images, media_type
from septet.models.faults import (
    AccessDenied,
    ConnectionFailed,
    ContentFiltered,
    ContextExceeded,
    Fault,
    FeatureMissing,
    InvalidAnswer,
    RateLimited,
    RequestRejected,
    ServerError,
    TimedOut,
    fault_of_response,
    one_line,
)
from septet.models.http import STREAM_OVERHEAD, UNCOMPRESSED, HttpClient, answer_too_large

WITHOUT_HTTPX2 = ("cohere", "github", "groq")
"""Providers whose libraries take no client of the newer kind: what they answer is bounded when it has been read."""


def bounded_provider(http: HttpClient) -> Callable[[str], Provider[object]]:
    """Makes providers whose client reads no more of an answer than it may be; closed with the http."""

    def make(name: str) -> Provider[object]:
        if name.startswith("gateway/") or name in WITHOUT_HTTPX2:
            return infer_provider(name)
        kind = infer_provider_class(name)
        if "http_client" not in inspect.signature(kind).parameters:
            return infer_provider(name)
        client = bounded_client(http)
        http.on_close(client.aclose)
        return kind(http_client=client)  # pyright: ignore[reportCallIssue]  # its signature was asked

    return make


def bounded_client(http: HttpClient) -> httpx2.AsyncClient:
    client = create_async_httpx2_client()
    client.headers.update(UNCOMPRESSED)

    async def bound(response: httpx2.Response) -> None:
        packing = response.headers.get("content-encoding", "identity").strip().lower()
        if packing != "identity":
            raise InvalidAnswer(f"the answer is packed, which was not asked for ({packing[:40]})")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = BoundedStream(response.stream, http.max_answer_bytes)

    client.event_hooks = {**client.event_hooks, "response": [bound]}
    return client


class BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, longest: int) -> None:
        self._stream = stream
        self._longest = longest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._longest * STREAM_OVERHEAD
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise answer_too_large(self._longest)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


FAULTS: tuple[tuple[type[AgentRunError], type[Fault]], ...] = (
    (ContentFilterError, ContentFiltered),
    (ModelContextWindowExceededError, ContextExceeded),
    (ModelQuotaExceededError, AccessDenied),
    (ModelAuthenticationError, AccessDenied),
    (ModelRateLimitError, RateLimited),
    (ModelUnavailableError, RateLimited),
    (ModelServerError, ServerError),
    (ModelTimeoutError, TimedOut),
    (ModelRequestTimeout, TimedOut),
    (ModelRequestRejectedError, RequestRejected),
)
"""The first that fits; a provider's HTTP answer is read by its words before."""


@contextmanager
def library_faults() -> Generator[None, None, None]:
    """Its own tree, and what a provider's library lets through, as faults."""
    try:
        yield
    except Fault:
        raise
    except Exception as error:  # any provider's library may be behind it, each raises its own kinds
        raise find_fault(error) from error


def find_fault(error: BaseException) -> Fault:
    """Ours, which a provider's library may have wrapped in its own; else by the kind of the library's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Fault):
            return cause
        cause = cause.__cause__ or cause.__context__
    match error:
        case UserError():
            return RequestRejected(one_line(str(error)))
        case AgentRunError():
            return fault_of(error)
        case _:
            return ServerError(one_line(f"{type(error).__name__}: {error}"))


def fault_of(error: AgentRunError) -> Fault:
    cause = one_line(error.message)
    if isinstance(error, ModelHTTPError) and not isinstance(error, ModelContextWindowExceededError):
        return fault_of_response(error.status_code, error.headers or {}, body_of(error))
    kind = next((fault for known, fault in FAULTS if isinstance(error, known)), None)
    if kind is RateLimited and isinstance(error, ModelAPIError):
        return RateLimited(cause, error.retry_after)
    if kind is not None:
        return kind(cause)
    if isinstance(error, ModelConnectionError):
        # A request that was read from has begun an answer: it was cut off.
        return InvalidAnswer(cause) if error.phase == "read" else ConnectionFailed(cause)
    return InvalidAnswer(cause)


def body_of(error: ModelHTTPError) -> bytes:
    return error.body.encode() if isinstance(error.body, str) else msgspec.json.encode(error.body)


async def history(messages: Iterable[Message], load: Loader | None) -> list[ModelMessage]:
    """Each message in order; a result is filed under the name of the tool whose call it answers."""
    names: dict[str, str] = {}
    found: list[ModelMessage] = []
    for message in messages:
        names |= {call.id: call.name for call in message.calls}
        if message.role == "assistant":
            found.append(ModelResponse(parts=response_parts(message)))
        else:
            found.append(ModelRequest(parts=[await request_part(message, names, load)]))
    return found


def response_parts(message: Message) -> list[ModelResponsePart]:
    calls = [
        ToolCallPart(tool_name=call.name, args=call.arguments or "{}", tool_call_id=call.id)
        for call in message.calls
    ]
    return [*([TextPart(content=message.text)] if message.text or not calls else []), *calls]


async def request_part(message: Message, names: dict[str, str], load: Loader | None) -> ModelRequestPart:
    if message.role == "system":
        return SystemPromptPart(content=message.text)
    if message.role == "tool":
        name = names.get(message.call, "")
        return ToolReturnPart(tool_name=name, content=message.text, tool_call_id=message.call)
    shown = await load_images(load, message)
    if not shown:
        return UserPromptPart(content=message.text)
    parts: list[UserContent] = [BinaryContent(data=one, media_type=media_type(one)) for one in shown]
    return UserPromptPart(content=[message.text, *parts] if message.text else parts)


def parameters(request: Request) -> ModelRequestParameters:
    offers = [tool_definition(offer) for offer in request.tools]
    if request.schema is None:
        return ModelRequestParameters(function_tools=offers)
    wanted = OutputObjectDefinition(json_schema=request.schema, name="reply")
    return ModelRequestParameters(
        function_tools=offers, output_mode="native", output_object=wanted, allow_text_output=True
    )


def tool_definition(offer: ToolOffer) -> ToolDefinition:
    return ToolDefinition(
        name=offer.name, description=offer.description, parameters_json_schema=offer.parameters
    )


def settings(request: Request, silent_seconds: float) -> ModelSettings:
    """No retries of its own: the wrappers here ask again, and say so."""
    found = ModelSettings(timeout=silent_seconds, max_retries=0)
    if request.temperature is not None:
        found["temperature"] = request.temperature
    if request.max_tokens is not None:
        found["max_tokens"] = request.max_tokens
    return found


def delta_of(event: ModelResponseStreamEvent) -> Delta | None:
    """What an event adds to the text or to the reasoning."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return Delta(text=text)
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            return Delta(reasoning=text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return Delta(text=text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str() as text)) if text:
            return Delta(reasoning=text)
        case _:
            return None


def answer_of(response: ModelResponse, seconds: float) -> Answer:
    """The whole answer, if it is one."""
    if response.finish_reason is None or response.state != "complete":
        raise InvalidAnswer("the stream ended without a finish reason")
    if response.finish_reason == "content_filter":
        raise ContentFiltered("the provider's content filter stopped the answer")
    calls = tuple(tool_call(part) for part in response.parts if isinstance(part, ToolCallPart))
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    cut: StopReason = "length" if response.finish_reason == "length" else "finished"
    if not text and not calls and cut == "finished":
        raise InvalidAnswer("the answer was empty")
    return Answer(
        text=text,
        model=response.model_name or "",
        calls=calls,
        reasoning="".join(part.content for part in response.parts if isinstance(part, ThinkingPart)),
        stop="calls" if calls and cut != "length" else cut,
        usage=Usage(
            prompt=response.usage.input_tokens,
            cached=response.usage.cache_read_tokens,
            completion=response.usage.output_tokens,
        ),
        seconds=seconds,
    )


def tool_call(part: ToolCallPart) -> ToolCall:
    arguments = part.args if isinstance(part.args, str) else msgspec.json.encode(part.args or {}).decode()
    return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments)


SILENT_SECONDS = 180.0


class PydanticAIModel:
    """Its connections are opened by the first request and closed with the client; `load` gives images."""

    def __init__(
        self,
        inner: Inner,
        http: HttpClient,
        load: Loader | None = None,
        silent_seconds: float = SILENT_SECONDS,
    ) -> None:
        self._inner = inner
        self._http = http
        self._load = load
        self._silent_seconds = silent_seconds
        self._is_open = False

    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        self._check(request)
        await self._open()
        messages = await history(request.messages, self._load)
        chosen = settings(request, self._silent_seconds)
        started = time.monotonic()
        with library_faults():
            async with model_request_stream(
                self._inner, messages, model_settings=chosen, model_request_parameters=parameters(request)
            ) as stream:
                events, size = aiter(stream), 0
                while (event := await self._next(events)) is not None:
                    delta = delta_of(event) or Delta()
                    size += len(delta.text) + len(delta.reasoning)
                    if size > self._http.max_answer_bytes:
                        raise answer_too_large(self._http.max_answer_bytes)
                    yield delta
            whole = stream.get()
            if isinstance(self._inner, OpenAIChatModel) and not has_finish_reason(whole):
                raise InvalidAnswer("the stream ended without a finish reason")
            yield answer_of(whole, time.monotonic() - started)

    async def _next(self, events: AsyncIterator[ModelResponseStreamEvent]) -> ModelResponseStreamEvent | None:
        with anyio.move_on_after(self._silent_seconds):
            return await anext(events, None)
        raise TimedOut("the provider has been silent for too long")

    def _check(self, request: Request) -> None:
        """What the library knows that this model cannot do is said in words from the start."""
        profile = self._inner.profile
        if request.tools and not profile.get("supports_tools", True):
            raise FeatureMissing("tools", f"{self._inner.model_name} has no tools")
        if request.schema is not None and not profile.get("supports_json_schema_output", False):
            raise FeatureMissing("schema", f"{self._inner.model_name} has no JSON schemas")

    async def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            await self._inner.__aenter__()
            self._http.on_close(self._close)

    async def _close(self) -> None:
        self._is_open = False
        await self._inner.__aexit__(None, None, None)


def has_finish_reason(response: ModelResponse) -> bool:
    """The library makes up a finish reason where this wire gave none; the server's own is in the details."""
    own = (response.provider_details or {}).get("finish_reason")
    return own is not None or response.finish_reason == "content_filter"


def open_pydantic_ai(name: str, http: HttpClient, load: Loader | None = None) -> PydanticAIModel:
    """`name` is PROVIDER:MODEL as the library spells it; keys are in the providers' own variables."""
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise BadConfig(
            f"'pydantic-ai:{name[:80]}' names no model", "write pydantic-ai:PROVIDER:NAME, e.g. groq:…"
        )
    try:
        return PydanticAIModel(infer_model(name, provider_factory=bounded_provider(http)), http, load)
    except ImportError as error:
        raise NoModel(
            f"what pydantic-ai needs for {provider} is not installed",
            f"install 'pydantic-ai-slim[{provider.partition('-')[0]}]'",
        ) from error
    except (UserError, ValueError) as error:
        why = str(error).partition(". ")[0]
        raise NoModel(f"pydantic-ai:{name[:80]}: {why}", "check the name and the provider's key") from error
