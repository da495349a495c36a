"""What is AutoGen's, for our teams: its model clients, agents and teams answer as models, its tools are tools."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager

from autogen_agentchat.base import ChatAgent, TaskResult, Team
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    ModelClientStreamingChunkEvent,
    StopMessage,
    TextMessage,
)
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import Tool as AutoGenTool
from autogen_core.tools import ToolSchema
from pydantic import ValidationError

from septet.domain.messages import Answer, Delta, Message, Request, ToolCall, Usage
from septet.domain.plans import Refusal
from septet.models.faults import (
    ContentFiltered,
    Fault,
    FeatureMissing,
    InvalidAnswer,
    ServerError,
    fault_of_rejection,
    fault_of_response,
    one_line,
)
from septet.ports import Model
from septet.tools.registry import Outcome, Tool, ToolContext, misfit, read_arguments, shorten_fault


def as_model(made: ChatCompletionClient | ChatAgent | Team) -> Model:
    """A model for `Team.load(model=…, models=…)`: the client, or whatever the agent or team answers.

    An agent or a team is reset before each request, which tells it everything: its own memory does not matter.
    """
    return ClientModel(made) if isinstance(made, ChatCompletionClient) else AgentModel(made)


def as_tool(inner: AutoGenTool, *, repeatable: bool = False, roles: Iterable[str] = ()) -> Tool:
    """A tool for `septet.tool`, or for an entry point of the group `septet.tools`."""

    parameters = {**inner.schema.get("parameters", {"type": "object", "properties": {}})}

    async def call(context: ToolContext, arguments: str) -> Outcome:
        given = read_arguments(arguments)
        if isinstance(given, Refusal):
            return given
        async with cancelled_at_exit() as cancellation:
            try:
                value: object = await inner.run_json(given, cancellation)
            except ValidationError as error:
                return misfit(inner.name, shorten_fault(error), parameters)
            return inner.return_value_as_string(value)

    return Tool(inner.name, inner.description, parameters, call, repeatable, roles=tuple(roles))


@asynccontextmanager
async def cancelled_at_exit() -> AsyncGenerator[CancellationToken]:
    """A token for work that must not go on when nobody waits for it any more."""
    cancellation = CancellationToken()
    try:
        yield cancellation
    finally:
        cancellation.cancel()


class ClientModel:
    def __init__(self, client: ChatCompletionClient) -> None:
        self._client = client

    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        refuse_images(request)
        self._check(request)
        started, result = time.monotonic(), None
        async with cancelled_at_exit() as cancellation:
            with client_faults():
                stream = self._client.create_stream(
                    llm_messages(request),
                    tools=[
                        tool_schema(offer.name, offer.description, offer.parameters)
                        for offer in request.tools
                    ],
                    extra_create_args=settings(request),
                    cancellation_token=cancellation,
                )
                async with aclosing(stream):
                    async for piece in stream:
                        if isinstance(piece, str):
                            yield Delta(text=piece)
                        else:
                            result = piece
        yield to_answer(result, time.monotonic() - started)

    def _check(self, request: Request) -> None:
        """Raise at once for what the client says that its model lacks."""
        if request.tools and not self._client.model_info["function_calling"]:
            raise FeatureMissing("tools", "the model of this client calls no functions")
        if request.schema is not None:
            raise FeatureMissing("schema", "AutoGen's clients take classes, no schemas")


def refuse_images(request: Request) -> None:
    if any(message.images for message in request.messages):
        raise FeatureMissing("images", "AutoGen's clients, agents and teams get no pictures from here")


@contextmanager
def client_faults() -> Generator[None]:
    """Turn exceptions of a provider's library, which may be of any type, into faults."""
    try:
        yield
    except Fault:
        raise
    except Exception as error:
        raise find_fault(error) from error


def find_fault(error: Exception) -> Fault:
    status: object = getattr(error, "status_code", None)
    text = one_line(f"{type(error).__name__}: {error}")
    if isinstance(status, int):
        return fault_of_response(status, {}, str(error).encode())
    return fault_of_rejection(str(error), text) if isinstance(error, ValueError) else ServerError(text)


def settings(request: Request) -> dict[str, object]:
    wanted = {"temperature": request.temperature, "max_tokens": request.max_tokens}
    return {name: value for name, value in wanted.items() if value is not None}


def tool_schema(name: str, description: str, parameters: dict[str, object]) -> ToolSchema:
    schema: object = parameters
    return ToolSchema(name=name, description=description, parameters=schema)  # pyright: ignore[reportArgumentType]  # a JSON schema


def llm_messages(request: Request) -> list[LLMMessage]:
    """The messages in AutoGen's types; a tool's result gets the name of the tool that was called."""
    names = {call.id: call.name for message in request.messages for call in message.calls}
    return [llm_message(message, request.role, names.get(message.call, "")) for message in request.messages]


def llm_message(message: Message, member: str, called: str) -> LLMMessage:
    match message.role:
        case "system":
            return SystemMessage(content=message.text)
        case "user":
            return UserMessage(content=message.text, source="user")
        case "tool":
            result = FunctionExecutionResult(content=message.text, name=called, call_id=message.call)
            return FunctionExecutionResultMessage(content=[result])
        case "assistant":
            if not message.calls:
                return AssistantMessage(content=message.text, source=member)
            calls = [FunctionCall(one.id, one.arguments, one.name) for one in message.calls]
            return AssistantMessage(content=calls, thought=message.text or None, source=member)


def to_answer(result: CreateResult | None, seconds: float) -> Answer:
    if result is None:
        raise InvalidAnswer("the stream ended without a result")
    if result.finish_reason == "content_filter":
        raise ContentFiltered("the provider's content filter stopped the answer")
    spoken, called = (result.content, []) if isinstance(result.content, str) else ("", result.content)
    if not spoken and not called:
        raise InvalidAnswer("the answer was empty")
    return Answer(
        text=spoken,
        calls=tuple(ToolCall(id=one.id, name=one.name, arguments=one.arguments) for one in called),
        reasoning=result.thought or "",
        stop="length" if result.finish_reason == "length" else "calls" if called else "finished",
        usage=Usage(prompt=result.usage.prompt_tokens, completion=result.usage.completion_tokens),
        seconds=seconds,
    )


class AgentModel:
    """An agent or a team; one request at a time, for it is one object."""

    def __init__(self, inner: ChatAgent | Team) -> None:
        self._inner = inner
        self._free = asyncio.Lock()

    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        refuse_images(request)
        if request.tools or request.schema is not None:
            raise FeatureMissing(
                "tools" if request.tools else "schema", f"{self._inner.name} answers in text"
            )
        started, said = time.monotonic(), list[BaseAgentEvent | BaseChatMessage]()
        async with self._free, cancelled_at_exit() as cancellation:
            with client_faults():
                await self._reset(cancellation)
                stream = self._inner.run_stream(
                    task=task_of(request),
                    cancellation_token=cancellation,
                    output_task_messages=False,
                )
                async with aclosing(stream):
                    async for delta in told(stream, said):
                        yield delta
        yield last_answer(said, self._inner.name, time.monotonic() - started)

    async def _reset(self, cancellation: CancellationToken) -> None:
        if isinstance(self._inner, ChatAgent):
            await self._inner.on_reset(cancellation)
        else:
            await self._inner.reset()


def task_of(request: Request) -> TextMessage:
    """The thread as one message: what ends a team may count messages."""
    parts = [
        f"{request.role} said:\n{one.text}" if one.role == "assistant" else one.text
        for one in request.messages
    ]
    return TextMessage(content="\n\n".join(parts), source="user")


async def told(
    stream: AsyncIterator[BaseAgentEvent | BaseChatMessage | TaskResult],
    said: list[BaseAgentEvent | BaseChatMessage],
) -> AsyncGenerator[Delta, None]:
    """What those inside say to each other, as reasoning before the answer; whole messages are added to `said`."""
    async for item in stream:
        if isinstance(item, ModelClientStreamingChunkEvent):
            yield Delta(reasoning=item.content)
        elif not isinstance(item, TaskResult):
            said.append(item)
            yield Delta(reasoning=f"{item.source}: {item.to_text()}\n")


def last_answer(said: Sequence[BaseAgentEvent | BaseChatMessage], name: str, seconds: float) -> Answer:
    """The last thing that was said is the answer; a message that only says why it stopped is none."""
    messages = [one for one in said if isinstance(one, BaseChatMessage) and not isinstance(one, StopMessage)]
    if not messages or not messages[-1].to_text().strip():
        raise InvalidAnswer(f"{name} said nothing")
    used = [one.models_usage for one in said if one.models_usage is not None]
    return Answer(
        text=messages[-1].to_text(),
        usage=Usage(
            prompt=sum(one.prompt_tokens for one in used),
            completion=sum(one.completion_tokens for one in used),
        ),
        seconds=seconds,
    )
