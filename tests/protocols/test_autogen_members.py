"""AutoGen's model clients, agents, teams and tools as members of ours, and our teams as an agent of AutoGen."""

import asyncio
import runpy
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelCapabilities,  # pyright: ignore[reportDeprecated]  # what the abstract class still wants
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import FunctionTool
from cli.commands import SMALL

import septet
from septet import BadUsage, Recorded, Result, Team
from septet.agents.ask import Live
from septet.autogen import TeamAgent, as_model, as_tool
from septet.domain.events import ModelAnswered
from septet.domain.messages import Answer, Delta, Message, Request, ToolCall, ToolOffer
from septet.models.faults import ContentFiltered, FeatureMissing, InvalidAnswer, RateLimited
from septet.ports import Model
from septet.tools.registry import REGISTERED

pytestmark = pytest.mark.anyio
EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "python"
TALK = """floor: group_chat
budget: {rounds: 2}
members:
- {role: writer, name: writer}
- {role: editor, name: editor}
"""


class Client(ChatCompletionClient):
    """Gives the answers that it has, in order, and keeps what it was asked."""

    def __init__(self, *answers: str | list[FunctionCall] | Exception, calls_functions: bool = True) -> None:
        self._answers = list(answers)
        self._calls_functions = calls_functions
        self.asked: list[Sequence[LLMMessage]] = []
        self.tools: Sequence[Any] = ()
        self.extra: Mapping[str, Any] = {}
        self.finish: Any = "stop"

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        self.asked.append(list(messages))
        self.tools, self.extra = options.get("tools", ()), options.get("extra_create_args", {})
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return CreateResult(
            finish_reason=self.finish,
            content=answer,
            usage=RequestUsage(prompt_tokens=7, completion_tokens=3),
            cached=False,
        )

    async def create_stream(
        self, messages: Sequence[LLMMessage], **options: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        result = await self.create(messages, **options)
        if isinstance(result.content, str):
            for word in result.content.split():
                yield word
        yield result

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def total_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def count_tokens(self, messages: Sequence[LLMMessage], **_: Any) -> int:
        return 0

    def remaining_tokens(self, messages: Sequence[LLMMessage], **_: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> ModelCapabilities:  # pyright: ignore[reportDeprecated]  # the class wants it
        raise NotImplementedError

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=self._calls_functions,
            json_output=False,
            family="unknown",
            structured_output=False,
        )


class Echo(BaseChatAgent):
    """Counts what it was told since its last reset."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "counts")
        self._heard = 0

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        self._heard += len(messages)
        return Response(
            chat_message=TextMessage(content=f"{self.name} heard {self._heard}", source=self.name)
        )

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        self._heard = 0


def asking(*texts: str, **fields: Any) -> Request:
    messages = tuple(Message(role="user", text=text) for text in texts)
    return Request(role="coder", step=1, messages=messages, **fields)


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name), run_name="example")


async def answer_of(model: Model, request: Request) -> tuple[Answer, list[Delta]]:
    pieces = [piece async for piece in model.answer(request)]
    assert isinstance(pieces[-1], Answer)
    return pieces[-1], [piece for piece in pieces if isinstance(piece, Delta)]


async def test_a_client_streams_and_its_tokens_count() -> None:
    answer, deltas = await answer_of(as_model(Client("good morning")), asking("hello", temperature=0.5))

    assert [delta.text for delta in deltas] == ["good", "morning"]
    assert answer.text == "good morning"
    assert (answer.usage.prompt, answer.usage.completion) == (7, 3)


async def test_a_client_is_told_the_thread_with_calls_and_their_results() -> None:
    client = Client([FunctionCall("2", '{"path": "b"}', "read")])
    offer = ToolOffer(name="read", description="reads", parameters={"type": "object", "properties": {}})
    call = ToolCall(id="1", name="read", arguments='{"path": "a"}')
    messages = (
        Message(role="system", text="you code"),
        Message(role="user", text="go on"),
        Message(role="assistant", text="I look", calls=(call,)),
        Message(role="tool", text="text of a", call="1"),
        Message(role="assistant", text="I have looked"),
    )
    request = Request(role="coder", step=1, messages=messages, tools=(offer,), temperature=0.5)
    answer, _ = await answer_of(as_model(client), request)

    assert answer.stop == "calls"
    assert answer.calls == (ToolCall(id="2", name="read", arguments='{"path": "b"}'),)
    assert [type(one).__name__ for one in client.asked[0]] == [
        "SystemMessage",
        "UserMessage",
        "AssistantMessage",
        "FunctionExecutionResultMessage",
        "AssistantMessage",
    ]
    result = client.asked[0][3]
    assert isinstance(result, FunctionExecutionResultMessage)
    assert (result.content[0].name, result.content[0].content) == ("read", "text of a")
    assert client.tools[0]["name"] == "read"
    assert client.extra == {"temperature": 0.5}


class TooMany(Exception):
    status_code = 429


async def test_what_a_client_cannot_do_or_raises_is_a_fault() -> None:
    offer = ToolOffer(name="read", description="reads", parameters={"type": "object", "properties": {}})
    with pytest.raises(FeatureMissing):
        await answer_of(as_model(Client("x", calls_functions=False)), asking("hello", tools=(offer,)))
    with pytest.raises(FeatureMissing):
        await answer_of(as_model(Client("x")), asking("hello", schema={"type": "object"}))
    with pytest.raises(RateLimited):
        await answer_of(as_model(Client(TooMany("slow down"))), asking("hello"))
    with pytest.raises(InvalidAnswer):
        await answer_of(as_model(Client("")), asking("hello"))
    filtered = Client("x")
    filtered.finish = "content_filter"
    with pytest.raises(ContentFiltered):
        await answer_of(as_model(filtered), asking("hello"))


async def test_an_agent_and_a_team_answer_afresh_for_each_request() -> None:
    team = RoundRobinGroupChat([Echo("ann"), Echo("bob")], termination_condition=MaxMessageTermination(4))
    model = as_model(team)
    for _ in range(2):
        answer, deltas = await answer_of(model, asking("one", "two"))
        assert answer.text == "ann heard 2"  # the thread, and what bob said
        assert [delta.reasoning.partition(":")[0] for delta in deltas] == ["ann", "bob", "ann"]
    answer, _ = await answer_of(as_model(Echo("cid")), asking("one"))
    assert answer.text == "cid heard 1"


async def test_teams_and_clients_of_autogen_talk_with_ours(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(TALK)
    client = Client("a story")
    inner = RoundRobinGroupChat([Echo("ann"), Echo("bob")], termination_condition=MaxMessageTermination(4))
    models = {"writer": as_model(client), "editor": as_model(inner)}
    async with Team.load(str(tmp_path / "team.yaml"), models=models, home=tmp_path / "home") as team:
        run = team.start("say something", workspace=tmp_path / "work", tokens=True)
        items = [item async for item in run]
        result = await run

    assert result.status == "rounds"
    assert result.members["writer"].usage.prompt == 7
    assert any(item.reasoning.startswith("ann: ") for item in items if isinstance(item, Live))
    said = [
        one.event.answer.text
        for one in items
        if isinstance(one, Recorded) and isinstance(one.event, ModelAnswered)
    ]
    assert said[0] == "a story"
    assert said[1] == "ann heard 2"


async def test_a_member_that_is_not_there_gets_no_model(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="writer"):
        Team.load("iterate", model=SMALL, models={"writer": as_model(Client())})


def double(number: int) -> int:
    """Doubles a number."""
    if number < 0:
        raise ValueError("no negative numbers")
    return 2 * number


def calling(name: str, arguments: str) -> list[FunctionCall]:
    return [FunctionCall(f"{name}{arguments}", arguments, name)]


async def test_a_tool_of_autogen_is_used_by_a_member(tmp_path: Path) -> None:
    septet.tool(as_tool(FunctionTool(double, description="Doubles a number.", name="double")))
    assistant = Client(
        *[
            calling("double", one)
            for one in ('{"number": 4}', '{"number": "x"}', '{"number": -1}', "nonsense")
        ],
        "It is 8.",
    )
    proxy = Client(calling("SendMessage", '{"recipient": "assistant", "message": "double 4"}'), "It is 8.")
    try:
        models = {"proxy": as_model(proxy), "assistant": as_model(assistant)}
        async with Team.load("assistant", models=models, home=tmp_path / "home") as team:
            result = await team.start("double 4", workspace=tmp_path / "work")
    finally:
        del REGISTERED["double"]

    assert (result.status, result.answer) == ("answered", "It is 8.")
    results = [
        one.content[0].content
        for one in assistant.asked[-1]
        if isinstance(one, FunctionExecutionResultMessage)
    ]
    assert results[0] == "8"
    assert "double cannot be called like that" in results[1]
    assert "no negative numbers" in results[2]
    assert "not a JSON object" in results[3]


@pytest.fixture
async def builders(tmp_path: Path) -> AsyncGenerator[Team]:
    async with Team.load("iterate", model=SMALL, home=tmp_path / "home") as team:
        yield team


async def test_our_team_is_an_agent_in_a_group_chat_of_autogen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SEPTET_MODEL", SMALL)
    build: Callable[..., Awaitable[TaskResult]] = example("autogen_agent.py")["build"]
    result = await build("add two numbers", str(tmp_path / "work"), Echo("ann"))

    report, counted = result.messages[-2:]
    assert isinstance(report, TextMessage)
    assert (report.source, report.content.partition(" ")[0]) == ("builder", "done;")
    assert "P1" in report.content
    assert getattr(counted, "content", "") == "ann heard 2"
    assert list((tmp_path / "work").glob("*.py"))


async def test_the_example_with_members_of_autogen_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write: Callable[..., Awaitable[Result]] = example("autogen_members.py")["write"]
    client = Client(*(f"line {number}" for number in range(3)))
    critics = RoundRobinGroupChat([Echo("ann"), Echo("bob")], termination_condition=MaxMessageTermination(4))
    try:
        result = await write("a story", client, critics, FunctionTool(double, "Doubles a number."))
    finally:
        del REGISTERED["double"]

    assert result.status == "rounds"
    assert result.members["editor"].answers == 3


async def test_an_agent_of_autogen_asks_and_takes_answers(builders: Team, tmp_path: Path) -> None:
    builder = TeamAgent("builder", builders, workspace=tmp_path / "work", ask=True)
    planned = await builder.run(task="add two numbers")
    assert planned.messages[-1].to_text().endswith("Approve this plan? Answer yes, or say what to change.")

    later = TeamAgent("builder", builders, ask=True)
    await later.load_state(await builder.save_state())
    built = await later.run(task="yes")

    assert built.messages[-1].to_text().startswith("done")
    assert any("version 1" in message.to_text() for message in built.messages)
    await later.on_reset(CancellationToken())
    assert (await later.run()).messages[-1].to_text().startswith("Nothing has been asked for")


async def test_cancelling_pauses_the_chat(builders: Team, tmp_path: Path) -> None:
    builder = TeamAgent("builder", builders, workspace=tmp_path / "work")
    cancellation = CancellationToken()

    async def cancel_after_version() -> None:
        async for item in builder.run_stream(task="add two numbers", cancellation_token=cancellation):
            if "version 1" in item.model_dump_json():
                cancellation.cancel()

    with pytest.raises(asyncio.CancelledError):
        await cancel_after_version()
    paused = await builders.session.state(builder.chat)
    assert paused.ended is None
    assert paused.work.versions

    result = await builder.run(task="go on")
    assert result.messages[-1].to_text().startswith("done")
    assert (await builders.session.state(builder.chat)).ended is not None


KILLED = """
import asyncio, os, signal, sys
from septet import Team
from septet.autogen import TeamAgent

async def main(model, home, work):
    async with Team.load("iterate", model=model, home=home) as team:
        builder = TeamAgent("builder", team, workspace=work, chat="adder")
        async for item in builder.run_stream(task="add two numbers"):
            if "version 1" in item.model_dump_json():
                os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_named_chat_goes_on_after_its_process_was_killed(builders: Team, tmp_path: Path) -> None:
    work = str(tmp_path / "work")
    command = [sys.executable, "-c", KILLED, SMALL, str(tmp_path / "home"), work]
    killed = await anyio.run_process(command, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()

    builder = TeamAgent("builder", builders, workspace=work, chat="adder")
    result = await builder.run(task="go on")

    assert result.messages[-1].to_text().startswith("done")
    assert (await builders.session.state("adder")).goal == "add two numbers"
    assert [head.chat for head in await builders.session.store.chats()] == ["adder"]
