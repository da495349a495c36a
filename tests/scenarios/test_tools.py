"""A coder with tools: reads, edits and runs in a repository, thinks in an append-only thread, and survives kills."""

import os
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec.structs import replace
from sampling import sampled
from scenarios.assistant.scripts import Turn, calls, says, write
from scenarios.autocoder.playing import home_in

from septet.agents import tool_loop
from septet.agents.tool_context import CallContext
from septet.domain.events import (
    ChatEnded,
    CheckChallenged,
    Event,
    MemberBriefed,
    ModelAnswered,
    ReplyRefused,
    RunFinished,
    ToolAnswered,
    ToolCalled,
    VersionWritten,
)
from septet.domain.messages import Message, Request, ToolCall
from septet.domain.teams import TeamSpec
from septet.testing.replies import FEATURES, Feature, ReceivedRequest, Reply, Script
from septet.testing.server import serve_mock
from septet.tools import registry
from septet.ways.iterate.tool_members import added_to_plan
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model

pytestmark = pytest.mark.anyio
FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": (
        '"""Prices."""\n\n\n'
        + "".join(
            f"def tax_{n}(price: float) -> float:\n    return price * 1.{n}\n\n\n" for n in range(10, 60)
        )
        + "def total(prices: list[float]) -> float:\n    return sum(prices[1:])\n"
    ),
    "tests/test_prices.py": "from shop.prices import total\n\n\ndef test_one():\n    assert total([]) == 0\n",
    "README.md": "# Shop\n",
    ".gitignore": "*.log\n",
}
TEST = "\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n"
PLAN = "1. total adds all prices\n   check: tests tests/test_prices.py::test_total\n"


def edit(path: str, old: str, new: str) -> tuple[str, Mapping[str, object]]:
    return "edit", {"edits": [{"path": path, "old": old, "new": new}]}


MEND = edit("shop/prices.py", "    return sum(prices[1:])\n", "    return sum(prices)\n")
ADD = edit("tests/test_prices.py", "    assert total([]) == 0\n", "    assert total([]) == 0\n" + TEST)
MENDED: tuple[Turn, ...] = (
    says("planner", PLAN),
    calls("coder", ("search", {"pattern": "def total"}), ("read", {"path": "tests/test_prices.py"})),
    calls(
        "coder",
        MEND,
        ADD,
        ("run", {"command": "python -m pytest -q"}),
        expect="shop/prices.py:204: def total",
    ),
    says("coder", "total left out the first price; it adds all of them now.", expect="2 passed"),
    says("reviewer", "verdict: accept", expect="-    return sum(prices[1:])\n+    return sum(prices)\n"),
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "begin"], check=True)
    return folder


def team(**changes: object) -> TeamSpec:
    members = tuple(replace(one, form="tools") for one in TEAMS["iterate"].members)
    return replace(TEAMS["iterate"], members=members, approve="auto", **changes)


async def play(
    folder: Path,
    model: str,
    until: Callable[[Event], bool] = lambda _: False,
    requests: list[Request] | None = None,
    spec: TeamSpec | None = None,
) -> list[Event]:
    """Start or resume a chat in folder/shop; everything in its log afterwards."""
    async with open_session(home_in(folder)) as session:
        if requests is not None:
            session.models.debug_listener = requests.append
        if not await session.log("c"):
            await session.start("mend total", with_model(spec or team(), model), folder / "shop", "c")
        sandbox = await session.sandbox()
        async with aclosing(session.perform("c", sandbox)) as performance:
            async for recorded in performance:
                if until(recorded.event):
                    break
        return [recorded.event for recorded in await session.log("c")]


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, ToolAnswered)]


def ending(events: list[Event]) -> str:
    return next(event.reason for event in reversed(events) if isinstance(event, ChatEnded))


def size(request: Request, count: int | None = None) -> int:
    return len(msgspec.json.encode((request.messages[:count], request.tools)))


async def test_a_bug_is_mended_in_few_requests_that_share_their_beginning(
    repository: Path, tmp_path: Path
) -> None:
    requests: list[Request] = []
    events = await play(tmp_path, write(tmp_path / "s.yaml", *MENDED), requests=requests)
    assert ending(events) == "done"
    assert len(requests) <= 6
    assert (repository / "shop/prices.py").read_text().endswith("    return sum(prices)\n")
    versions = [event for event in events if isinstance(event, VersionWritten)]
    assert [[file.path for file in one.files] for one in versions] == [
        ["shop/prices.py", "tests/test_prices.py"]
    ]
    asked = [one for one in requests if one.role == "coder"]
    for before, after in pairwise(asked):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.tools == before.tools
    assert size(asked[1]) >= 0.8 * size(asked[2])
    assert [event.summary for event in events if isinstance(event, ToolAnswered)] == [
        "search def total → 1 line",
        "read tests/test_prices.py",
        "edit shop/prices.py +1 \N{MINUS SIGN}1",
        "edit tests/test_prices.py +4 \N{MINUS SIGN}0",
        "run python -m pytest -q → 2 passed",
    ]


def shape(events: list[Event]) -> list[object]:
    """What does not differ from one run to the next: not how long programs took."""
    found: list[object] = []
    for event in events:
        match event:
            case ModelAnswered(role=role, answer=answer):
                found.append((role, answer.text, answer.calls))
            case MemberBriefed(member=member):
                found.append(member)
            case ToolAnswered(id=number, failed=failed, changes=changes, summary=summary):
                found.append((number, failed, changes, summary))
            case ToolCalled() | VersionWritten() | ChatEnded():
                found.append(event)
            case _:
                continue
    return found


@pytest.mark.torture
async def test_it_goes_on_wherever_it_was_stopped(repository: Path, tmp_path: Path) -> None:
    model = write(tmp_path / "s.yaml", *MENDED)
    original = {path: (repository / path).read_text() for path in FILES}
    whole = await play(tmp_path, model)
    stops = [
        number
        for number, event in enumerate(whole)
        if isinstance(event, ToolCalled | ToolAnswered | MemberBriefed)
    ]
    for number in stops[::4]:
        other = tmp_path / str(number)
        for path, text in original.items():
            (other / "shop" / path).parent.mkdir(parents=True, exist_ok=True)
            (other / "shop" / path).write_text(text)
        count = iter(range(number + 1))
        await play(other, model, until=lambda _, count=count: next(count, None) is None)
        again = await play(other, model)
        assert shape(again) == shape(whole), number
        assert (other / "shop" / "shop/prices.py").read_text() == (repository / "shop/prices.py").read_text()


async def test_whatever_is_called_is_answered(repository: Path, tmp_path: Path) -> None:
    (repository / ".env").write_text("KEY=1\n")
    (repository / "debug.log").write_text("x\n")
    model = write(
        tmp_path / "s.yaml",
        says("planner", PLAN),
        calls(
            "coder",
            ("nothing", {}),
            ("read", {"path": 3}),
            ("read", {"path": ".env"}),
            ("read", {"path": "debug.log"}),
            ("read", {"path": "../secret"}),
            ("write", {"path": "README.md", "text": "gone"}),
            ("write", {"path": "bad.py", "text": "def f(:"}),
            edit("shop/prices.py", "return", "return"),
            ("delete", {"paths": ["README.md"]}),
        ),
        calls(
            "coder",
            ("write", {"path": "new.py", "text": "x = 1\n"}),
            MEND,
            ADD,
            ("delete", {"paths": ["new.py"]}),
        ),
        says("coder", "done"),
        says("reviewer", "verdict: accept"),
    )
    events = await play(tmp_path, model)
    said = texts(events)
    for text, reason in zip(
        said,
        [
            "there is no tool 'nothing'; the tools are list_files, search,",
            "read cannot be called like that: Expected `str`",
            "there is no '.env'",
            "'debug.log' may not be read",
            "there is no '../secret'",
            "you have not read it whole",
            "nothing was written, for bad.py, line 1: SyntaxError",
            "are the same",
            "deleted: README.md",
        ],
        strict=False,
    ):
        assert reason in text
    assert ending(events) == "done"
    assert not (repository / "README.md").exists()
    assert not (repository / "new.py").exists()


@pytest.mark.torture
async def test_findings_and_red_checks_are_told_in_the_same_thread(repository: Path, tmp_path: Path) -> None:
    def mend(old: str, new: str) -> tuple[str, Mapping[str, object]]:
        return edit("shop/prices.py", f"    return sum({old})\n", f"    return sum({new})\n")

    finding = "verdict: revise\n- [must] P1 (shop/prices.py:205): adds only the last"
    model = write(
        tmp_path / "s.yaml",
        calls("planner", ("outline", {"path": "shop"})),
        says("planner", PLAN, expect="def total(prices: list[float])"),
        calls("coder", mend("prices[1:]", "prices[:1]"), ADD),
        says("coder", "mended"),
        calls("coder", mend("prices[:1]", "prices[-1:]"), expect="assert 1 == 6"),
        says("coder", "mended again"),
        calls("reviewer", ("read", {"path": "shop/prices.py", "start": 204}), ("edit", {}), expect="NOT met"),
        says("reviewer", finding, expect="there is no tool 'edit'"),
        calls("coder", mend("prices[-1:]", "prices"), ("check", {}), expect="F1 [must] P1"),
        says("coder", "it adds all now", expect="everything that a machine can check is met"),
        says("coder", "F1: fixed, all are added", expect="no answer to F1"),
        says("reviewer", "verdict: accept", expect="-    return sum(prices[-1:])"),
    )
    requests: list[Request] = []
    events = await play(tmp_path, model, requests=requests)
    assert ending(events) == "done"
    for role in ("planner", "coder", "reviewer"):
        asked = [one for one in requests if one.role == role]
        for before, after in pairwise(asked):
            assert after.messages[: len(before.messages)] == before.messages
    told = [event.text for event in events if isinstance(event, MemberBriefed) and event.member == "coder"]
    assert "# Goal" in told[0]
    assert "# Goal" not in told[1]
    assert not any(
        event.purpose == "script"
        for event in events
        if isinstance(event, RunFinished) and not event.id[0].isdigit()
    )


async def test_a_coder_with_tools_may_also_send_whole_files(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    plan = "1. add adds\n   check: tests test_add.py\n"
    code = "```python add.py\ndef add(a, b):\n    return a + b\n```\n"
    test = "from add import add\n\ndef test_add():\n    assert add(2, 3) == 5\n    assert add(1, 1) == 2\n"
    model = write(
        tmp_path / "s.yaml",
        says("planner", plan),
        calls("coder", ("write", {"path": "test_add.py", "text": test})),
        says("coder", f"Here it is.\n\n{code}"),
        says("reviewer", "verdict: accept"),
    )
    events = await play(tmp_path, model)
    assert ending(events) == "done"
    version = next(event for event in events if isinstance(event, VersionWritten))
    assert [file.path for file in version.files] == ["add.py", "test_add.py"]


WRONG = (
    "1. total adds all prices\n   check: example shop.prices.total([1, 2, 3]) => 7\n"
    "2. it is tested\n   check: tests tests/test_prices.py::test_total\n"
)
CHALLENGE = "P1: check wrong, because 1 + 2 + 3 is 6; instead example shop.prices.total([1, 2, 3]) => 6"
TEST_FILE = f"```python tests/test_prices.py\n{FILES['tests/test_prices.py']}{TEST}```"


CHALLENGED_WITH = {
    "after edits": (calls("coder", MEND, ADD), says("coder", f"It adds all prices.\n{CHALLENGE}")),
    "after blocks": (
        calls("coder", MEND, ("read", {"path": "tests/test_prices.py"})),
        says("coder", f"{TEST_FILE}\n\n{CHALLENGE}"),
    ),
    "beside calls": ({**calls("coder", MEND, ADD), "say": CHALLENGE}, says("coder", "It adds all prices.")),
}


@pytest.mark.parametrize(
    ("way", "killed"),
    [
        *((way, True) for way in CHALLENGED_WITH),
        *sampled([(way, False) for way in CHALLENGED_WITH], every=3),
    ],
)
async def test_a_challenge_that_comes_with_files_is_heard_and_the_files_are_taken(
    repository: Path, tmp_path: Path, way: str, killed: bool
) -> None:
    model = write(
        tmp_path / "s.yaml",
        says("planner", WRONG),
        *CHALLENGED_WITH[way],
        says("planner", CHALLENGE, expect="The coder says that a check is wrong"),
        says("reviewer", "verdict: accept"),
    )
    if killed:
        await play(tmp_path, model, until=lambda event: isinstance(event, VersionWritten))
    events = await play(tmp_path, model)
    assert ending(events) == "done"
    assert sum(isinstance(event, CheckChallenged) for event in events) == 1
    assert sum(isinstance(event, VersionWritten) for event in events) == 1


async def test_a_challenge_without_a_reason_is_refused_also_where_files_come_with_it(
    repository: Path, tmp_path: Path
) -> None:
    model = write(
        tmp_path / "s.yaml",
        says("planner", WRONG),
        calls("coder", MEND, ADD),
        says("coder", "P1: check wrong"),
        says("coder", CHALLENGE, expect="say why: 'P1: check wrong, because"),
        says("planner", CHALLENGE),
        says("reviewer", "verdict: accept"),
    )
    assert ending(await play(tmp_path, model)) == "done"


async def test_a_turn_has_so_many_calls_and_who_changes_nothing_is_told_so(
    repository: Path, tmp_path: Path
) -> None:
    list_all: tuple[str, Mapping[str, object]] = ("list_files", {})
    look = calls("coder", *[list_all] * 20)
    model = write(
        tmp_path / "s.yaml",
        says("planner", PLAN),
        look,
        look,
        says("coder", "there is nothing to do", expect="40 calls are all that one turn has"),
        calls("coder", MEND, expect="You have changed nothing"),
        says("coder", "```python shop/prices.py\nx = 1\n```"),
    )
    events = await play(tmp_path, model, until=lambda event: isinstance(event, ReplyRefused))
    refused = [event.reason for event in events if isinstance(event, ReplyRefused)]
    assert refused == ["shop/prices.py: there already, and not read by you; read it, or use edit"]
    assert sum(isinstance(event, ToolCalled) for event in events) == 40


def wire_script(kind: str) -> Script:
    """The same model on every wire: it says what comes next for the member whose part stands in the request."""
    left = {
        role: [turn for turn in MENDED if turn["role"] == role] for role in ("planner", "coder", "reviewer")
    }

    def reply(seen: ReceivedRequest) -> Reply:
        if kind == "text" and seen.fields.get("tools"):
            return Reply()  # refused by the server before anybody looks at it
        body = seen.body.decode()
        role = next(role for role in left if f"You are the {role} of a small software team" in body)
        turn = left[role].pop(0)
        wishes = msgspec.convert(turn.get("calls", []), list[dict[str, object]])
        if kind == "text":
            blocks = [f"```tool\n{msgspec.json.encode(wish).decode()}\n```" for wish in wishes]
            return Reply(text="\n".join(blocks) or str(turn["say"]))
        made = [
            ToolCall(
                id=f"call_{place}",
                name=str(wish["name"]),
                arguments=msgspec.json.encode(wish["arguments"]).decode(),
            )
            for place, wish in enumerate(wishes)
        ]
        return Reply(text=str(turn.get("say", "")), calls=tuple(made), reasoning="let me think")

    return reply


@pytest.mark.parametrize("kind", ["openai", "anthropic", "ollama", "text"])
async def test_every_wire_carries_tools(repository: Path, tmp_path: Path, kind: str) -> None:
    features: frozenset[Feature] = FEATURES - {"tools"} if kind == "text" else FEATURES
    async with serve_mock(wire_script(kind), features=features) as server:
        environment = {
            **os.environ,
            "ANTHROPIC_BASE_URL": server.url.removesuffix("/v1"),
            "ANTHROPIC_API_KEY": "k",
            "OLLAMA_HOST": server.url.removesuffix("/v1"),
        }
        named = {"anthropic": "anthropic/mock", "ollama": "ollama/mock:70b"}
        model = named.get(kind, f"url:{server.url}#mock")
        async with open_session(home_in(tmp_path), environment) as session:
            spec = with_model(replace(TEAMS["iterate"], approve="auto"), model)
            assert {one.form for one in spec.members if one.role in ("planner", "coder", "reviewer")} == {
                "tools"
            }
            await session.start("mend total", spec, repository, "c")
            events = [one.event async for one in session.perform("c", await session.sandbox())]
    assert ending(events) == "done"
    assert [event.summary for event in events if isinstance(event, ToolAnswered)][-1].endswith("2 passed")
    assert len(server.seen) <= 6 + 3 * (kind == "text"), (
        "each member of a server without tools asks for them once"
    )


async def test_an_example_that_is_held_back_is_not_told_by_tools(tmp_path: Path, repository: Path) -> None:
    example, held = "shop.prices.total([1, 2]) => 3", "shop.prices.total([4, 38]) => 42"
    special = edit("shop/prices.py", "sum(prices[1:])", "(print(prices) or 3) if prices else 0")
    right = edit("shop/prices.py", "(print(prices) or 3) if prices else 0", "sum(prices)")
    turns = (
        says("planner", f"1. total adds\n   check: example {example}\n   check: held {held}\n"),
        calls("coder", special, ("check", {})),
        says("coder", "It adds.", expect="everything that a machine can check is met"),
        calls("coder", right, expect="P2 NOT met: an example that is held back fails"),
        says("coder", "It adds now."),
        says("reviewer", "verdict: accept"),
    )
    requests: list[Request] = []
    events = await play(tmp_path, write(tmp_path / "script.yaml", *turns), requests=requests)
    assert [one.reason for one in events if isinstance(one, ChatEnded)] == ["done"]
    writers = [one for one in requests if "You are the planner" not in one.messages[0].text]
    assert writers
    assert not any("38" in message.text for one in writers for message in one.messages)


@pytest.fixture
def registered() -> Generator[None]:
    yield
    registry.REGISTERED.clear()


@pytest.mark.usefixtures("registered", "repository")
async def test_what_must_not_be_repeated_is_answered_as_interrupted(tmp_path: Path) -> None:
    paid: list[int] = []

    @registry.tool(repeatable=False)
    def pay(context: registry.ToolContext, amount: int) -> str:
        """Pay something."""
        paid.append(amount)
        return "paid"

    model = write(
        tmp_path / "s.yaml",
        says("planner", PLAN),
        calls("coder", (pay.__name__, {"amount": 1}), (pay.__name__, {"amount": 2}), MEND, ADD),
        says("coder", "done", expect="pay was interrupted; whether it took effect is not known"),
        says("reviewer", "verdict: accept"),
    )
    await play(tmp_path, model, until=lambda event: isinstance(event, ToolCalled))
    before = len(paid)
    events = await play(tmp_path, model)
    assert before <= 1
    assert paid[before:] == [2]
    assert ending(events) == "done"


@pytest.mark.usefixtures("registered", "repository")
async def test_a_long_answer_is_told_in_part_and_kept_whole(tmp_path: Path) -> None:
    noise = "".join(f"line {number}\n" for number in range(9_000))

    @registry.tool
    def measure(context: registry.ToolContext) -> str:
        """Measure everything."""
        return noise

    model = write(tmp_path / "s.yaml", says("planner", PLAN), calls("coder", (measure.__name__, {}), MEND))
    await play(tmp_path, model, until=lambda event: isinstance(event, ToolAnswered))
    async with open_session(home_in(tmp_path)) as session:
        events = [one.event for one in await session.log("c")]
        answered = next(event for event in events if isinstance(event, ToolAnswered))
        assert (await session.blobs.get(answered.whole)).decode() == noise
    assert len(answered.text.encode()) <= 8_000
    assert answered.text.startswith("line 0\n")
    assert answered.text.endswith("line 8999\n")


@pytest.mark.usefixtures("registered", "repository")
async def test_a_long_thread_is_shortened_once_and_then_only_added_to(tmp_path: Path) -> None:
    @registry.tool
    def measure(context: registry.ToolContext) -> str:
        """Measure everything."""
        return "0123456789" * 700

    look = calls("coder", (measure.__name__, {}))
    turns = [says("planner", PLAN), *[look] * 14, says("coder", "measured")]
    requests: list[Request] = []
    model = write(tmp_path / "s.yaml", *turns)
    told = await play(tmp_path, model, lambda event: "measured" in str(event), requests)
    assert sum(isinstance(event, MemberBriefed) and event.shortens for event in told) == 1
    asked = [one for one in requests if one.role == "coder"]
    kept = [after.messages[: len(before.messages)] == before.messages for before, after in pairwise(asked)]
    assert kept.count(False) == 1
    assert size(asked[kept.index(False) + 1]) < size(asked[kept.index(False)]) / 3
    goal = asked[0].messages[1].text
    assert all(one.messages[1].text == goal for one in asked)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("moment", sampled(["after", "before"], every=2))
def test_killed_between_the_intent_and_the_effect_of_each_tool(
    repository: Path, tmp_path: Path, moment: str
) -> None:
    """A process is killed at every call; the next one takes up the call, and is killed at the one after it."""

    @registry.tool(repeatable=False)
    def pay(context: registry.ToolContext) -> str:
        """Pay something."""
        with (tmp_path / "paid").open("a") as file:
            file.write("paid\n")
        return "paid"

    wishes: list[tuple[str, Mapping[str, object]]] = [
        ("list_files", {}),
        ("search", {"pattern": "def total"}),
        ("outline", {"path": "shop"}),
        ("read", {"path": "tests/test_prices.py"}),
        MEND,
        ADD,
        ("write", {"path": "new.py", "text": "x = 1\n"}),
        ("delete", {"paths": ["new.py"]}),
        ("run", {"command": "python -m pytest -q"}),
        (pay.__name__, {}),
        ("check", {}),
    ]
    model = write(
        tmp_path / "s.yaml",
        says("planner", PLAN),
        calls("coder", *wishes),
        says("coder", "done"),
        says("reviewer", "verdict: accept"),
    )
    for number in range(len(wishes)):
        killed_by = process_ended_by(lambda: anyio.run(play, tmp_path, model), moment)
        assert killed_by == signal.SIGKILL, number
    events = anyio.run(play, tmp_path, model)
    answered = [event for event in events if isinstance(event, ToolAnswered)]
    assert [event.id for event in answered] == [f"3.1.{place}" for place in range(1, len(wishes) + 1)]
    assert ["interrupted" in event.text for event in answered] == [name == pay.__name__ for name, _ in wishes]
    assert (tmp_path / "paid").exists() == (moment == "after")
    assert [event.summary for event in answered][4:9] == [
        "edit shop/prices.py +1 \N{MINUS SIGN}1",
        "edit tests/test_prices.py +4 \N{MINUS SIGN}0",
        "write new.py (1 line)",
        "delete new.py",
        "run python -m pytest -q → 2 passed",
    ]
    assert ending(events) == "done"
    assert not (repository / "new.py").exists()


def process_ended_by(work: Callable[[], object], moment: str) -> int:
    """Work in a process that kills itself at its first new call of a tool; the signal that ended it."""
    child = os.fork()
    if child:
        return os.WTERMSIG(os.waitpid(child, 0)[1])
    use = tool_loop.use_tool

    async def use_and_die(
        call: ToolCalled, tools: registry.Toolbox, context: CallContext, interrupted: bool
    ) -> registry.Outcome:
        if interrupted:
            return await use(call, tools, context, interrupted)
        if moment == "after":
            await use(call, tools, context, interrupted)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    tool_loop.use_tool = use_and_die
    try:
        work()
    finally:
        os._exit(1)


HANDED_IN: tuple[Turn, ...] = (
    says("planner", PLAN),
    {**calls("coder", MEND, ADD, ("check", {"ready": True})), "say": "total adds all prices now."},
    says("reviewer", "verdict: accept"),
)


async def test_a_coder_hands_in_by_its_last_check(repository: Path, tmp_path: Path) -> None:
    requests: list[Request] = []
    events = await play(tmp_path, write(tmp_path / "s.yaml", *HANDED_IN), requests=requests)
    assert ending(events) == "done"
    assert len(requests) == 3
    (version,) = [event for event in events if isinstance(event, VersionWritten)]
    assert version.note == "total adds all prices now."
    assert texts(events)[-1].endswith("Your files are handed in.")
    place = next(
        place for place, event in enumerate(events) if isinstance(event, ToolAnswered) and event.ready
    )
    other = tmp_path / "killed"
    for path, text in FILES.items():
        (other / "shop" / path).parent.mkdir(parents=True, exist_ok=True)
        (other / "shop" / path).write_text(text)
    count = iter(range(place + 1))
    model = str(tmp_path / "s.yaml")
    await play(other, f"scripted:{model}", until=lambda _: next(count, None) is None)
    again = await play(other, f"scripted:{model}")
    assert shape(again) == shape(events)


async def test_a_check_that_fails_hands_nothing_in(repository: Path, tmp_path: Path) -> None:
    wrong = edit("shop/prices.py", "    return sum(prices[1:])\n", "    return sum(prices[:1])\n")
    right = edit("shop/prices.py", "    return sum(prices[:1])\n", "    return sum(prices)\n")
    ready: tuple[str, Mapping[str, object]] = ("check", {"ready": True})
    model = write(
        tmp_path / "s.yaml",
        says("planner", PLAN),
        calls("coder", wrong, ADD, ready),
        calls("coder", right, ready, expect="not done: 1 of 2 tests fails"),
        says("reviewer", "verdict: accept"),
    )
    events = await play(tmp_path, model)
    assert ending(events) == "done"
    (version,) = [event for event in events if isinstance(event, VersionWritten)]
    assert version.note == "checked and handed in"


async def test_who_hands_in_answers_the_findings_too(repository: Path, tmp_path: Path) -> None:
    ready: tuple[str, Mapping[str, object]] = ("check", {"ready": True})
    comment = edit("shop/prices.py", "    return sum(prices)\n", "    return sum(prices)  # all\n")
    model = write(
        tmp_path / "s.yaml",
        says("planner", PLAN),
        calls("coder", MEND, ADD, ready),
        says("reviewer", "verdict: revise\n- [must] P1 (shop/prices.py:205): say that it is all"),
        calls("coder", comment, ready, expect="F1 [must] P1"),
        says("coder", "F1: fixed, said so", expect="no answer to F1"),
        says("reviewer", "verdict: accept"),
    )
    events = await play(tmp_path, model)
    assert ending(events) == "done"


async def test_a_check_does_not_wait_for_packages_that_nobody_has_decided_about(
    repository: Path, tmp_path: Path
) -> None:
    program = repository / "shop/prices.py"
    program.write_text(
        f"try:\n    import wcwidth\nexcept ImportError:\n    wcwidth = None\n{program.read_text()}"
    )
    model = write(tmp_path / "s.yaml", says("planner", PLAN), calls("coder", MEND, ADD, ("check", {})))
    spec = team(packages="ask")

    def checked(event: Event) -> bool:
        return isinstance(event, ToolAnswered) and event.summary.startswith("check")

    events = await play(tmp_path, model, until=checked, spec=spec)
    assert "everything that a machine can check is met" in texts(events)[-1]


async def test_a_reply_may_change_pieces_of_files_that_nobody_has_read_whole(
    repository: Path, tmp_path: Path
) -> None:
    diff = "--- a/shop/prices.py\n+++ b/shop/prices.py\n@@ @@\n-    return sum(prices[1:])\n+    return sum(prices)\n"
    search = "<<<<<<< SEARCH\n# Shop\n=======\n# Shops\n>>>>>>> REPLACE"
    told = f"Here:\n\n```diff\n{diff}```\n\n**2. README.md**\n\n```\n{search}\n```"
    model = write(
        tmp_path / "s.yaml",
        says("planner", "1. total adds all prices\n   check: example shop.prices.total([1, 2]) => 3\n"),
        calls("coder", ("search", {"pattern": "def total", "around": 2})),
        says("coder", f"{told}\n\n```text .gitignore\nx\n```"),
        says("coder", "left out: .gitignore", expect=".gitignore: there already, and not read by you"),
        says("reviewer", "verdict: accept", expect="-    return sum(prices[1:])\n+    return sum(prices)\n"),
    )
    events = await play(tmp_path, model)
    assert ending(events) == "done"
    (version,) = [event for event in events if isinstance(event, VersionWritten)]
    assert [file.path for file in version.files] == ["README.md", "shop/prices.py"]


ITEMS = "1. adds\n   check: tests test_a.py"
MORE = "2. clears\n   check: judged reviewer"


@pytest.mark.parametrize(
    ("told", "now", "news"),
    [
        (f"# Plan\n{ITEMS}\nrun: a\n\n# Code", f"# Plan\n{ITEMS}\n{MORE}\nrun: a", MORE),
        (f"# Plan\n{ITEMS}\nrun: a", f"# Plan\n{ITEMS}\n{MORE}\nrun: b", f"{MORE}\nrun: b"),
        (f"# Plan\n{ITEMS}", f"# Plan\n1. adds all\n{MORE}", ""),
        ("# Goal\nadd", f"# Plan\n{ITEMS}", ""),
        (f"# Plan\n{ITEMS}", f"# Goal\n{ITEMS}", ""),
    ],
    ids=["one more", "another command", "changed", "nothing told", "no plan"],
)
def test_of_a_plan_that_goes_on_only_what_is_new_is_told(told: str, now: str, news: str) -> None:
    messages = [Message(role="user", text=told)]
    assert added_to_plan(messages, now) == (f"# Added to the plan\n{news}" if news else "")
