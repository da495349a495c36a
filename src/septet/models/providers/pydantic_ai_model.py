"""Models by the library pydantic-ai, with the same limits and faults as all others."""

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
from septet.models.encoding import LoadBlob, load_images, media_type
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
"""Providers whose libraries accept no httpx2 client: the size of their answers is checked after reading."""


def bounded_provider(http: HttpClient) -> Callable[[str], Provider[object]]:
    """Make providers whose client limits the size of an answer; it is closed together with `http`."""

    def make(name: str) -> Provider[object]:
        if name.startswith("gateway/") or name in WITHOUT_HTTPX2:
            return infer_provider(name)
        kind = infer_provider_class(name)
        if "http_client" not in inspect.signature(kind).parameters:
            return infer_provider(name)
        client = bounded_client(http)
        http.on_close(client.aclose)
        return kind(http_client=client)  # pyright: ignore[reportCallIssue]  # its signature was checked

    return make


def bounded_client(http: HttpClient) -> httpx2.AsyncClient:
    client = create_async_httpx2_client()
    client.headers.update(UNCOMPRESSED)

    async def limit_size(response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            raise InvalidAnswer(f"the answer is compressed with {encoding[:40]}, which was not requested")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = BoundedStream(response.stream, http.max_answer_bytes)

    client.event_hooks = {**client.event_hooks, "response": [limit_size]}
    return client


class BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._max_bytes * STREAM_OVERHEAD
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise answer_too_large(self._max_bytes)
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
"""The first that fits; the text of an HTTP answer is classified before."""


@contextmanager
def library_faults() -> Generator[None, None, None]:
    """Turn exceptions of pydantic-ai and of the provider's library into faults."""
    try:
        yield
    except Fault:
        raise
    except Exception as error:  # each provider's library raises its own types
        raise find_fault(error) from error


def find_fault(error: BaseException) -> Fault:
    """Our own fault, if the library wrapped one in its exception; else a fault by the type of the exception."""
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
        # An error while reading means that the answer had begun: it was cut off.
        return InvalidAnswer(cause) if error.phase == "read" else ConnectionFailed(cause)
    return InvalidAnswer(cause)


def body_of(error: ModelHTTPError) -> bytes:
    return error.body.encode() if isinstance(error.body, str) else msgspec.json.encode(error.body)


async def history(messages: Iterable[Message], load: LoadBlob | None) -> list[ModelMessage]:
    """The messages in the library's types; a tool's result gets the name of the tool that was called."""
    names: dict[str, str] = {}
    converted: list[ModelMessage] = []
    for message in messages:
        names |= {call.id: call.name for call in message.calls}
        if message.role == "assistant":
            converted.append(ModelResponse(parts=response_parts(message)))
        else:
            converted.append(ModelRequest(parts=[await request_part(message, names, load)]))
    return converted


def response_parts(message: Message) -> list[ModelResponsePart]:
    calls = [
        ToolCallPart(tool_name=call.name, args=call.arguments or "{}", tool_call_id=call.id)
        for call in message.calls
    ]
    return [*([TextPart(content=message.text)] if message.text or not calls else []), *calls]


async def request_part(message: Message, names: dict[str, str], load: LoadBlob | None) -> ModelRequestPart:
    if message.role == "system":
        return SystemPromptPart(content=message.text)
    if message.role == "tool":
        name = names.get(message.call, "")
        return ToolReturnPart(tool_name=name, content=message.text, tool_call_id=message.call)
    images = await load_images(load, message)
    if not images:
        return UserPromptPart(content=message.text)
    parts: list[UserContent] = [BinaryContent(data=image, media_type=media_type(image)) for image in images]
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


def settings(request: Request, read_timeout: float) -> ModelSettings:
    """The settings of a request. The library must not retry: our wrappers do, and report it."""
    chosen = ModelSettings(timeout=read_timeout, max_retries=0)
    if request.temperature is not None:
        chosen["temperature"] = request.temperature
    if request.max_tokens is not None:
        chosen["max_tokens"] = request.max_tokens
    return chosen


def to_delta(event: ModelResponseStreamEvent) -> Delta | None:
    """The text or reasoning that an event adds; None if it adds none."""
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


def to_answer(response: ModelResponse, seconds: float) -> Answer:
    """The complete answer. Raises a fault if it is not valid."""
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


READ_TIMEOUT = 180.0


class PydanticAIModel:
    """Opened by the first request and closed together with `http`; `load` reads images."""

    def __init__(
        self,
        inner: Inner,
        http: HttpClient,
        load: LoadBlob | None = None,
        read_timeout: float = READ_TIMEOUT,
    ) -> None:
        self._inner = inner
        self._http = http
        self._load = load
        self._read_timeout = read_timeout
        self._is_open = False

    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        self._check(request)
        await self._open()
        messages = await history(request.messages, self._load)
        chosen = settings(request, self._read_timeout)
        started = time.monotonic()
        with library_faults():
            async with model_request_stream(
                self._inner, messages, model_settings=chosen, model_request_parameters=parameters(request)
            ) as stream:
                events, size = aiter(stream), 0
                while (event := await self._next(events)) is not None:
                    delta = to_delta(event) or Delta()
                    size += len(delta.text) + len(delta.reasoning)
                    if size > self._http.max_answer_bytes:
                        raise answer_too_large(self._http.max_answer_bytes)
                    yield delta
            whole = stream.get()
            if isinstance(self._inner, OpenAIChatModel) and not has_finish_reason(whole):
                raise InvalidAnswer("the stream ended without a finish reason")
            yield to_answer(whole, time.monotonic() - started)

    async def _next(self, events: AsyncIterator[ModelResponseStreamEvent]) -> ModelResponseStreamEvent | None:
        with anyio.move_on_after(self._read_timeout):
            return await anext(events, None)
        raise TimedOut("the provider sent nothing for too long")

    def _check(self, request: Request) -> None:
        """Raise FeatureMissing at once for features that this model lacks by the library's profile."""
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
    """Whether the server sent a finish reason. The library invents a missing one; the details hold the server's own."""
    sent = (response.provider_details or {}).get("finish_reason")
    return sent is not None or response.finish_reason == "content_filter"


def open_pydantic_ai(name: str, http: HttpClient, load: LoadBlob | None = None) -> PydanticAIModel:
    """`name` is PROVIDER:MODEL in the library's spelling; keys come from the providers' own variables."""
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise BadConfig(
            f"'pydantic-ai:{name[:80]}' is not a model name", "write pydantic-ai:PROVIDER:NAME, e.g. groq:…"
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
