"""The Python API, as programs of other people use it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.metadata import version
from inspect import signature
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import septet
from septet import BadUsage, Question, Recorded, Team
from septet.agents.ask import Live
from septet.domain.events import ChatEnded, PersonSpoke, PlanApproved
from septet.domain.messages import Answer, Delta, Request
from septet.domain.runs import Job, RunResult
from septet.errors import NeedsPerson
from septet.ports import Listener
from septet.wiring.api import Run, TeamOptions
from septet.wiring.shared_sandbox import SharedSandbox, rung_of

pytestmark = pytest.mark.anyio

TALK = """floor: group_chat
budget: {rounds: 3}
members:
- {role: writer, name: writer}
- {role: editor, name: editor}
"""
SCRIPTS = Path(__file__).parent.parent / "scripts"


class Parrot:
    """Says the last word that it was told."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def answer(self, request: Request) -> AsyncIterator[Delta | Answer]:
        self.asked.append(request)
        for word in ("good", " morning"):
            yield Delta(text=word)
        yield Answer(text="good morning", model="parrot")


@pytest.fixture
def talk(tmp_path: Path) -> str:
    (tmp_path / "team.yaml").write_text(TALK)
    return str(tmp_path / "team.yaml")


async def test_a_run_yields_events_and_tokens_of_a_model_object(talk: str, tmp_path: Path) -> None:
    model = Parrot()
    async with Team.load(talk, model=model, home=tmp_path / "home", budget={"rounds": 2}) as team:
        run = team.start("say something", workspace=tmp_path / "work", tokens=True)
        items = [item async for item in run]
        result = await run
    assert "".join(item.text for item in items if isinstance(item, Live)) == "good morning" * 2
    stored = [item for item in items if isinstance(item, Recorded)]
    assert [one.seq for one in stored] == list(range(1, len(stored) + 1))
    assert isinstance(stored[-1].event, ChatEnded)
    lines = [septet.to_json(one) for one in stored]
    assert [septet.to_json(septet.from_json(line)) for line in lines] == lines
    assert len(model.asked) == 2
    assert (result.chat, result.status) == (run.chat, "rounds")
    assert run.result == result


async def test_a_question_is_an_item_and_is_answered(tmp_path: Path) -> None:
    script = f"scripted:{SCRIPTS / 'small.yaml'}"
    seen: list[str] = []
    async with Team.load(model=script, home=tmp_path / "home", unsafe_local=True) as team:
        run = team.start("add two numbers", workspace=tmp_path / "work", ask=True)
        with pytest.raises(BadUsage, match="asks nothing"):
            await run.answer("too early")
        async for item in run:
            if isinstance(item, Question):
                seen.append(item.kind)
                with pytest.raises(NeedsPerson, match="asks something else"):
                    await run.answer("yes", action="0" * 64)
                await run.answer("yes", action=item.action)
            elif isinstance(item, Recorded) and isinstance(item.event, PlanApproved):
                assert item.event.by == "person"
        assert seen[0] == "plan"
        assert (await run).status == "done"


async def test_a_run_is_steered_cancelled_and_resumed(talk: str, tmp_path: Path) -> None:
    class Slow(Parrot):
        """Waits for ever at its first answer."""

        async def answer(self, request: Request) -> AsyncIterator[Delta | Answer]:
            if not self.asked:
                self.asked.append(request)
                began.set()
                await anyio.sleep_forever()
            async for piece in super().answer(request):
                yield piece

    began = anyio.Event()
    async with Team.load(talk, model=Slow(), home=tmp_path / "home") as team:
        run = team.start("say something", workspace=tmp_path / "work")
        await began.wait()
        await run.steer("in Latin, please")
        await run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        again = team.resume(run.chat)
        stored = [item async for item in again if isinstance(item, Recorded)]
        assert (await again).status == "rounds"
        assert (await team.resume(run.chat, "once more")).status == "rounds"
        events = [one.event for one in await log_of(team, run.chat)]
    assert stored
    assert [one.text for one in events if isinstance(one, PersonSpoke)] == ["in Latin, please", "once more"]
    assert sum(isinstance(one, ChatEnded) for one in events) == 2


async def log_of(team: Team, chat: str) -> list[Recorded]:
    return [*await team.session.log(chat)]


async def test_what_stops_a_run_is_raised_where_it_is_awaited_and_iterated(talk: str, tmp_path: Path) -> None:
    async with Team.load(talk, model=Parrot(), home=tmp_path / "home") as team:
        run = team.start(" ")
        with pytest.raises(BadUsage, match="goal is empty"):
            await run
        with pytest.raises(BadUsage, match="goal is empty"):
            [item async for item in run]
        with pytest.raises(BadUsage, match="goal is empty"):
            await run.steer("hello")
    with pytest.raises(BadUsage, match="not open"):
        team.start("say something")


def test_without_an_event_loop_there_is_a_call_that_waits(talk: str, tmp_path: Path) -> None:
    result = Team.run_sync(
        "say something", talk, model=Parrot(), home=tmp_path / "home", budget={"rounds": 1}
    )
    assert result.status == "rounds"


async def test_mistakes_are_named(talk: str) -> None:
    with pytest.raises(BadUsage, match="event loop is running"):
        Team.run_sync("say something", talk, model=Parrot())
    with pytest.raises(BadUsage, match="int is no model"):
        Team.load(talk, model=3)  # pyright: ignore[reportArgumentType]  # the mistake
    with pytest.raises(BadUsage, match="not an async function"):
        Team.load(talk, model=Parrot(), ask=lambda asked: "yes")  # pyright: ignore[reportArgumentType]  # the mistake
    with pytest.raises(BadUsage, match="budget cannot be read"):
        Team.load(talk, model=Parrot(), budget={"round": 3})
    with pytest.raises(BadUsage, match="object is no model"):
        Team.load(talk, model=object())  # pyright: ignore[reportArgumentType]  # the mistake
    with pytest.raises(BadUsage, match="team is not open"):
        Team.load(talk, model=Parrot()).start("say something")


def test_what_the_package_exports_is_there() -> None:
    assert set(septet.__all__) <= set(dir(septet))
    for name in dir(septet):
        assert getattr(septet, name) is not None
    assert septet.events.ChatEnded is ChatEnded


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "python.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    example = example.replace("scripted:demo/clock", f"scripted:{SCRIPTS / 'small.yaml'}")  # a shorter one
    environment = {**os.environ, "SEPTET_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("done 0 ")


async def test_talks_at_once_on_a_fresh_home_open_no_sandbox(talk: str, tmp_path: Path) -> None:
    started: list[str] = []
    watching = True

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event == "subprocess.Popen":
            started.append(str(arguments[0]))

    sys.addaudithook(watch)
    async with Team.load(talk, model=Parrot(), home=tmp_path / "home") as team:
        runs = [team.start("say something") for _ in range(8)]
        results = [await run for run in runs]
    watching = False
    assert len({result.chat for result in results}) == 8
    assert started == []


class Crowd:
    """A sandbox that knows how many programs ran in it at once."""

    def __init__(self) -> None:
        self.opened, self.running, self.most, self.order = 0, 0, 0, list[str]()

    async def open(self) -> "Crowd":
        self.opened += 1
        await anyio.lowlevel.checkpoint()
        return self

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        self.running += 1
        self.most = max(self.most, self.running)
        self.order.append(job.workspace)
        await anyio.wait_all_tasks_blocked()
        self.running -= 1
        return RunResult(exit_code=0)


async def test_a_shared_sandbox_is_opened_once_and_bounds_the_programs_at_once_in_their_order() -> None:
    crowd = Crowd()
    shared = SharedSandbox(crowd.open, limit=2)
    assert crowd.opened == 0

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(shared.run, Job(workspace=str(number), command=("true",)))

    assert (crowd.opened, crowd.most) == (1, 2)
    assert crowd.order == [str(number) for number in range(6)]


async def test_installations_count_among_the_programs_that_run_at_once() -> None:
    crowd = Crowd()
    shared = SharedSandbox(crowd.open, limit=2)
    installing = [rung_of(shared), rung_of(shared)]

    async with anyio.create_task_group() as tasks:
        for number, sandbox in enumerate([shared, *installing] * 3):
            tasks.start_soon(sandbox.run, Job(workspace=str(number), command=("true",)))

    assert (crowd.opened, crowd.most, len(crowd.order)) == (1, 2, 9)


NAMES = """Ask BadUsage Budget Context Event Handle Hands Project Question Recorded Result Run SeptetError Team Tool
ToolContext __version__ action autocoder compose_prompt events from_json to_json tool""".split()
OPTIONS = "agents ask budget home model models network packages store unsafe_local ways"
RUN = "abort answer ask begin cancel follow result steer"


def test_the_names_of_the_api_stay() -> None:
    """A program relies on each of them: one that goes, or one that comes, is a decision."""
    assert sorted(dir(septet)) == sorted(NAMES)
    assert sorted(TeamOptions.__annotations__) == OPTIONS.split()
    assert sorted(name for name in vars(Run) if not name.startswith("_")) == RUN.split()
    assert {"load", "resume", "result", "run", "run_sync", "start"} <= set(dir(Team))
    assert [*signature(Team.start).parameters] == ["self", "goal", "workspace", "name", "tokens", "ask"]
    assert [*signature(Team.resume).parameters] == ["self", "chat", "message", "action", "tokens", "ask"]
    assert septet.__version__ == version("septet")


async def test_options_reach_the_team_and_an_ask_is_given_questions(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> str:
        asked.append(question)
        return "yes"

    taken: septet.Ask = ask
    script = f"scripted:{SCRIPTS / 'small.yaml'}"
    async with Team.load(
        "iterate", model=script, home=tmp_path / "home", network="on", packages="ask", ask=taken
    ) as team:
        assert (team.spec.network, team.spec.packages) == ("on", "ask")
        run = team.start("add two numbers", workspace=tmp_path / "work", name="sum")
        assert (await run).status == "done"
    assert run.chat == "sum"
    assert asked[0].kind == "plan"
