"""A model of any provider that pydantic-ai knows. Imported only where one is asked for: it is heavy."""

import time
from collections.abc import AsyncGenerator, AsyncIterator

import anyio
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import Model as Inner
from pydantic_ai.models import infer_model
from pydantic_ai.models.openai import OpenAIChatModel

from septet.domain.talk import Answer, Delta, Request
from septet.errors import BadConfig, NoModel
from septet.models.encoding import Loader
from septet.models.faults import Garbled, Lacking, Stalled
from septet.models.pydantic_ai_bounds import bounded_provider
from septet.models.pydantic_ai_faults import faults_of_the_library
from septet.models.pydantic_ai_form import answered, history, parameters, piece, settings
from septet.models.wire import Wire, oversized

SILENT_SECONDS = 180.0


class PydanticAIModel:
    """Its connections are opened by the first request and closed with the wire; `load` gives images."""

    def __init__(
        self, inner: Inner, wire: Wire, load: Loader | None = None, silent_seconds: float = SILENT_SECONDS
    ) -> None:
        self._inner = inner
        self._wire = wire
        self._load = load
        self._silent_seconds = silent_seconds
        self._is_open = False

    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        self._check(request)
        await self._open()
        messages = await history(request.messages, self._load)
        chosen = settings(request, self._silent_seconds)
        started = time.monotonic()
        with faults_of_the_library():
            async with model_request_stream(
                self._inner, messages, model_settings=chosen, model_request_parameters=parameters(request)
            ) as stream:
                events, size = aiter(stream), 0
                while (event := await self._next(events)) is not None:
                    delta = piece(event) or Delta()
                    size += len(delta.text) + len(delta.reasoning)
                    if size > self._wire.longest_answer:
                        raise oversized(self._wire.longest_answer)
                    yield delta
            whole = stream.get()
            if isinstance(self._inner, OpenAIChatModel) and not said_why_it_ended(whole):
                raise Garbled("the stream ended without a finish reason")
            yield answered(whole, time.monotonic() - started)

    async def _next(self, events: AsyncIterator[ModelResponseStreamEvent]) -> ModelResponseStreamEvent | None:
        with anyio.move_on_after(self._silent_seconds):
            return await anext(events, None)
        raise Stalled("the provider has been silent for too long")

    def _check(self, request: Request) -> None:
        """What the library knows that this model cannot do is said in words from the start."""
        profile = self._inner.profile
        if request.tools and not profile.get("supports_tools", True):
            raise Lacking("tools", f"{self._inner.model_name} has no tools")
        if request.schema is not None and not profile.get("supports_json_schema_output", False):
            raise Lacking("schema", f"{self._inner.model_name} has no JSON schemas")

    async def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            await self._inner.__aenter__()
            self._wire.at_the_end(self._close)

    async def _close(self) -> None:
        self._is_open = False
        await self._inner.__aexit__(None, None, None)


def said_why_it_ended(response: ModelResponse) -> bool:
    """The library makes up a finish reason where this wire gave none; the server's own is in the details."""
    own = (response.provider_details or {}).get("finish_reason")
    return own is not None or response.finish_reason == "content_filter"


def open_pydantic_ai(name: str, wire: Wire, load: Loader | None = None) -> PydanticAIModel:
    """`name` is PROVIDER:MODEL as the library spells it; keys are in the providers' own variables."""
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise BadConfig(
            f"'pydantic-ai:{name[:80]}' names no model", "write pydantic-ai:PROVIDER:NAME, e.g. groq:…"
        )
    try:
        return PydanticAIModel(infer_model(name, provider_factory=bounded_provider(wire)), wire, load)
    except ImportError as error:
        raise NoModel(
            f"what pydantic-ai needs for {provider} is not installed",
            f"install 'pydantic-ai-slim[{provider.partition('-')[0]}]'",
        ) from error
    except (UserError, ValueError) as error:
        why = str(error).partition(". ")[0]
        raise NoModel(f"pydantic-ai:{name[:80]}: {why}", "check the name and the provider's key") from error
