"""Proxy and assistants: one answer to the person, one thread a pair, messages that queue."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from cli.commands import Septet, kinds
from sampling import sampled
from scenarios.assistant.scripts import Turn, calls, execute, file, says, send, write
from scenarios.autocoder.playing import home_in

from septet.domain.codec import decode
from septet.domain.events import AnswerGiven, Event, ModelAnswered, ReplyRefused, ToolAnswered, ToolCalled
from septet.domain.teams import RoleSpec, TeamSpec
from septet.tools import registry as tool_registry
from septet.tools.registry import ToolContext, tool
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model

pytestmark = pytest.mark.anyio
HELLO = "print('hello')\n"


async def play(
    folder: Path, model: str, spec: TeamSpec | None = None, until: type[Event] | None = None
) -> list[Event]:
    async with open_session(home_in(folder)) as session:
        if not await session.log("c"):
            await session.start("do it", with_model(spec or TEAMS["assistant"], model), folder / "w", "c")
        async for recorded in session.perform("c", await session.sandbox()):
            if until is not None and isinstance(recorded.event, until):
                break
        return [recorded.event for recorded in await session.log("c")]


def only(events: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def answers(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, ToolAnswered)]


def three_turns(folder: Path) -> str:
    return write(
        folder / "s.yaml",
        calls("proxy", send("say hello")),
        calls("assistant", file("hello.py", HELLO)),
        calls("assistant", execute("hello.py"), expect="+print"),
        says("assistant", "it says hello", expect="exit 0"),
        says("proxy", "Done: it says hello.", expect="it says hello"),
    )


async def test_the_recipient_takes_three_turns_and_the_person_sees_one_answer(tmp_path: Path) -> None:
    events = await play(tmp_path, three_turns(tmp_path))
    assert only(events, AnswerGiven) == [
        AnswerGiven(by="proxy", text="Done: it says hello.", ground="complete")
    ]
    said = [event.role for event in events if isinstance(event, ModelAnswered)]
    assert said == ["proxy", "assistant", "assistant", "assistant", "proxy"]
    assert (tmp_path / "w" / "hello.py").read_text() == 'print("hello")\n'


async def test_the_proxy_does_not_answer_before_its_time(tmp_path: Path) -> None:
    model = write(
        tmp_path / "s.yaml",
        says("proxy", "I will see to it and come back to you."),
        calls("proxy", send("do it"), expect="nobody has been asked yet"),
        says("assistant", "done"),
        says("proxy", "It is done."),
    )
    events = await play(tmp_path, model)
    assert [event.text for event in events if isinstance(event, AnswerGiven)] == ["It is done."]


async def test_a_certain_answer_needs_nobody(tmp_path: Path) -> None:
    events = await play(tmp_path, write(tmp_path / "s.yaml", says("proxy", "CERTAIN: hello!")))
    assert only(events, AnswerGiven) == [AnswerGiven(by="proxy", text="hello!", ground="certain")]


async def test_a_failing_program_gives_both_streams_and_its_status(tmp_path: Path) -> None:
    body = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)\n"
    model = write(
        tmp_path / "s.yaml",
        calls("proxy", send("try")),
        calls("assistant", file("bad.py", body), execute("bad.py")),
        says("assistant", "it fails", expect="bad.py: exit 3\nstdout:\nout\n\nstderr:\nerr"),
        says("proxy", "It fails."),
    )
    assert len(only(await play(tmp_path, model), AnswerGiven)) == 1


async def test_bad_calls_are_told_and_nothing_is_done(tmp_path: Path) -> None:
    link = tmp_path / "w"
    link.mkdir()
    (tmp_path / "outside.py").write_text("precious")
    model = write(
        tmp_path / "s.yaml",
        calls("proxy", send("x", "nobody"), send("x", "proxy"), ("File", {}), send("go")),
        calls(
            "assistant",
            ("File", {"file_name": "a.py", "body": "x = 1\n"}),
            file("../outside.py", "x = 1\n"),
            file("broken.py", "def f(:\n"),
            execute("absent.py"),
            ("Unknown", {}),
            send("are you there?", "proxy"),
        ),
        says("assistant", "nothing works"),
        says("proxy", "It could not be done."),
    )
    events = await play(tmp_path, model)
    texts = "\n".join(answers(events))
    for reason in (
        "there is no 'nobody' to write to; the recipients are assistant",
        "there is no tool 'File'; the tools are SendMessage",
        "missing required field `reasoning`",
        "'../outside.py' is not a path inside",
        "SyntaxError",
        "there is no 'absent.py'",
        "there is no tool 'Unknown'; the tools are File, ExecutePyFile, list_files, ",
    ):
        assert reason in texts
    assert (tmp_path / "outside.py").read_text() == "precious"
    assert list(link.iterdir()) == []


async def test_messages_to_a_busy_member_queue_and_share_a_thread(tmp_path: Path) -> None:
    model = write(
        tmp_path / "s.yaml",
        calls("proxy", send("first"), send("second")),
        says("assistant", "one", expect="first"),
        says("assistant", "two", expect="one\nsecond"),
        says("proxy", "Both are done.", expect="one\ntwo"),
    )
    events = await play(tmp_path, model)
    assert answers(events) == ["one", "two"]


async def test_somebody_who_waits_for_you_cannot_be_asked(tmp_path: Path) -> None:
    spec = TeamSpec(
        name="three",
        members=(
            RoleSpec(name="proxy", role="proxy"),
            RoleSpec(name="one", role="coder"),
            RoleSpec(name="two", role="coder"),
        ),
        floor="direct",
    )
    model = write(
        tmp_path / "s.yaml",
        calls("proxy", send("go", "one")),
        calls("one", send("help me", "two")),
        calls("two", send("help me first", "one")),
        says("two", "here you are", expect="one waits for your answer"),
        says("one", "done", expect="here you are"),
        says("proxy", "Done."),
    )
    assert len(only(await play(tmp_path, model, spec), AnswerGiven)) == 1


@pytest.fixture
def registry() -> Generator[None]:
    yield
    tool_registry.REGISTERED.clear()


@pytest.mark.usefixtures("registry")
async def test_people_add_tools_and_what_must_not_be_repeated_is_not(tmp_path: Path) -> None:
    paid: list[int] = []

    @tool(repeatable=False)
    @dataclass
    class Pay:
        """Pay an amount."""

        amount: int

        def use(self, context: ToolContext) -> str:
            paid.append(self.amount)
            return f"paid {self.amount}"

    assert Pay.__name__ in tool_registry.REGISTERED
    turns: list[Turn] = [
        calls("proxy", send("pay")),
        calls("assistant", ("Pay", {"amount": 5})),
        says("assistant", "not sure", expect="Pay was interrupted"),
        says("proxy", "It may have been paid."),
    ]
    model = write(tmp_path / "s.yaml", *turns)
    seen = await play(tmp_path, model, until=ToolCalled)
    while not any(isinstance(event, ToolCalled) and event.name == "Pay" for event in seen):
        seen = await play(tmp_path, model, until=ToolCalled)
    events = await play(tmp_path, model)
    assert paid == []
    assert len(only(events, AnswerGiven)) == 1


def test_a_thread_lives_across_processes(septet: Septet, tmp_path: Path) -> None:
    model = write(
        tmp_path / "s.yaml",
        calls("proxy", send("remember the word heron")),
        says("assistant", "I will"),
        says("proxy", "It will be remembered."),
        calls("proxy", send("which word?"), expect="And which word was it?"),
        says("assistant", "heron", expect="remember the word heron\nI will\nwhich word?"),
        says("proxy", "It was heron."),
    )
    first = septet("run", "Remember heron.", "-t", "assistant", "-m", model, "-q", "-n", "talk")
    assert (first.returncode, first.stdout) == (0, "It will be remembered.\n")
    second = septet("resume", "talk", "And which word was it?", "-q")
    assert (second.returncode, second.stdout) == (0, "It was heron.\n"), second.stderr


@pytest.mark.parametrize(
    "kind",
    sampled(["tool_called", "model_answered", "tool_answered", "run_finished", "version_written"], every=3),
)
def test_a_kill_changes_nothing(septet: Septet, tmp_path: Path, kind: str) -> None:
    run = ["run", "hello", "-t", "assistant", "-m", three_turns(tmp_path), "--json", "-n", "talk"]
    septet.killed(*run, at=f"septet.{kind}")
    resumed = septet("resume", "talk", "-q")
    assert (resumed.returncode, resumed.stdout) == (0, "Done: it says hello.\n"), resumed.stderr
    log = septet("export", "talk", "--format", "jsonl").stdout
    roles = [
        event.role for line in log.splitlines() if isinstance(event := decode(line).event, ModelAnswered)
    ]
    assert roles == ["proxy", "assistant", "assistant", "assistant", "proxy"]
    assert kinds(log).count("answer_given") == 1
    assert kinds(log).count("tool_called") == kinds(log).count("tool_answered") == 3


def test_refusals_are_bounded(septet: Septet, tmp_path: Path) -> None:
    model = write(tmp_path / "s.yaml", *[says("proxy", "soon")] * 3)
    stopped = septet("run", "hello", "-t", "assistant", "-m", model, "--json", "-n", "talk")
    assert stopped.returncode == 3
    assert msgspec.json.decode(stopped.stdout.splitlines()[-1], type=dict[str, object])["status"] == "error"
    refused = [
        one
        for line in stopped.stdout.splitlines()[:-1]
        if isinstance(one := decode(line).event, ReplyRefused)
    ]
    assert len(refused) == 3


def test_a_team_that_cannot_be_stepped_says_so(septet: Septet, tmp_path: Path) -> None:
    model = write(tmp_path / "s.yaml", says("proxy", "CERTAIN: hello"))
    refused = septet("run", "hello", "-t", "assistant", "-m", model, "--step")
    assert refused.returncode == 5
    assert "cannot be stepped" in refused.stderr
