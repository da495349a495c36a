"""Which job a run is: its command, its limits, its tests; and which of the files that it makes are kept."""

from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace
from team.states import STARTED, chat, version

from septet.agents import run_context as runs
from septet.agents import runner
from septet.agents.run_context import RunContext, control_job, evidence_job, shell_free_command
from septet.agents.runner import command_for
from septet.domain.events import BaseSurveyed, Event, PlanProposed, RunFinished, RunStarted, VersionWritten
from septet.domain.files import FileChange
from septet.domain.plans import Check, CommandSucceeds, ExampleHolds, Plan, Requirement, Serves, TestsPass
from septet.domain.runs import Limits, PlannedRun, Purpose, RunResult
from septet.domain.state import State
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio
LIMITS = Limits(seconds=20.0, cpu_seconds=20.0)


def written() -> VersionWritten:
    event = version(1, "a")[-1]
    assert isinstance(event, VersionWritten)
    return event


def state_with(check: Check, *events: Event, tests: str = "", base: bool = False) -> State:
    plan = Plan(items=(Requirement(id="P1", text="x", check=check),), run="python app.py")
    started = replace(STARTED, team=replace(STARTED.team, tests=tests, limits=LIMITS))
    surveyed: list[Event] = [BaseSurveyed(kind="folder", root="/w", manifest="m", tests="")] if base else []
    return chat([started, *surveyed, PlanProposed(plan=plan), written(), *events])


def started(purpose: Purpose, about: str = "", command: str = "python app.py") -> RunStarted:
    return RunStarted(id="r", purpose=purpose, about=about, command=command, tree="t", only=("test_a.py",))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python app.py 2", ("python", "app.py", "2")),
        ("python3 -m app a=b", ("python3", "-m", "app", "a=b")),
        ("python app.py 'a b'", ("sh", "-c", "python app.py 'a b'")),
        ("python app.py | sort", ("sh", "-c", "python app.py | sort")),
        ("make", ("sh", "-c", "make")),
        ("", ("sh", "-c", "")),
    ],
)
def test_a_plain_call_of_python_needs_no_shell(command: str, words: tuple[str, ...]) -> None:
    assert shell_free_command(command) == words


@pytest.mark.parametrize(
    ("purpose", "tests", "is_pytest", "command"),
    [
        ("tests", "", True, ("python", "app.py")),
        ("tests alone", "", True, ("python", "app.py")),
        ("tests", "make test", False, ("python", "app.py")),
        ("run", "", False, ("python", "app.py")),
        ("run", "make test", False, ("python", "app.py")),
    ],
)
def test_tests_are_run_by_pytest_unless_the_project_has_a_command_of_its_own(
    tmp_path: Path, purpose: Purpose, tests: str, is_pytest: bool, command: tuple[str, ...]
) -> None:
    state = state_with(TestsPass(target="test_a.py"), tests=tests)
    job = evidence_job(state, started(purpose), Workspace(tmp_path))
    assert (job.tests, job.command, job.only) == (is_pytest, command, ("test_a.py",))
    assert (job.workspace, job.home) == (str(tmp_path), state.workspace)


def test_a_runner_that_can_report_is_asked_to_only_where_it_runs_tests(tmp_path: Path) -> None:
    state = state_with(TestsPass(target="x"), tests="go test ./...")
    asked = evidence_job(state, started("tests", command="go test ./..."), Workspace(tmp_path))
    assert asked.command == ("sh", "-c", "go test ./... -json")
    plain = evidence_job(state, started("run", command="go test ./..."), Workspace(tmp_path))
    assert plain.command == ("sh", "-c", "go test ./...")


def test_a_check_runs_its_own_command_and_an_example_our_driver(tmp_path: Path) -> None:
    held = CommandSucceeds(command="python app.py 7", held=True)
    told = started("check", "P1", command="a check that is held back")
    assert evidence_job(state_with(held), told, Workspace(tmp_path)).command == ("python", "app.py", "7")
    example = state_with(ExampleHolds(call="app.f(1)", value="2"))
    command = evidence_job(example, told, Workspace(tmp_path)).command
    assert command[:2] == ("python", "-c")
    assert "app" in command[2]


@pytest.mark.parametrize(
    ("purpose", "base", "seconds"),
    [("tests", True, 600.0), ("tests alone", True, 20.0), ("run", True, 20.0), ("tests", False, 20.0)],
)
def test_only_a_projects_whole_suite_has_minutes(
    tmp_path: Path, purpose: Purpose, base: bool, seconds: float
) -> None:
    state = state_with(TestsPass(target="x"), base=base)
    assert evidence_job(state, started(purpose), Workspace(tmp_path)).limits.seconds == seconds


@pytest.mark.parametrize(("took", "seconds"), [([], 10.0), ([1.0, 3.0], 16.0), ([9.0], 20.0)])
def test_a_control_has_twice_the_time_of_the_program_and_a_little_more(
    tmp_path: Path, took: list[float], seconds: float
) -> None:
    done = [
        RunFinished(
            id=f"{place}",
            purpose="run" if place else "tests",
            command="c",
            tree=written().tree,
            result=RunResult(exit_code=0, seconds=one),
        )
        for place, one in enumerate(took)
    ]
    slow = RunFinished(
        id="c",
        purpose="hollow check",
        command="c",
        tree=written().tree,
        result=RunResult(exit_code=0, seconds=99.0),
    )
    state = state_with(TestsPass(target="x"), *done, slow)
    assert control_job(state, started("tests alone"), Workspace(tmp_path)).limits.seconds == seconds


@pytest.mark.parametrize(
    ("check", "planned", "tests", "command"),
    [
        (
            CommandSucceeds(command="python app.py 7"),
            PlannedRun(purpose="check", about="P1"),
            "",
            "python app.py 7",
        ),
        (
            CommandSucceeds(command="python app.py 7", held=True),
            PlannedRun(purpose="check", about="P1"),
            "",
            "a check that is held back",
        ),
        (
            ExampleHolds(call="app.f(1)", value="2"),
            PlannedRun(purpose="check on base", about="P1"),
            "",
            "app.f(1)",
        ),
        (Serves(path="/", prints="x"), PlannedRun(purpose="check", about="P1"), "", "python app.py"),
        (TestsPass(target="x"), PlannedRun(purpose="run"), "", "python app.py"),
        (TestsPass(target="x"), PlannedRun(purpose="tests"), "make test", "make test"),
        (CommandSucceeds(command="c"), PlannedRun(purpose="tests", about="P1"), "make test", "make test"),
    ],
)
def test_the_log_names_what_is_run(check: Check, planned: PlannedRun, tests: str, command: str) -> None:
    assert command_for(state_with(check, tests=tests), planned) == command


async def test_the_search_for_special_cases_hears_the_tests_of_the_plan(tmp_path: Path) -> None:
    context = RunContext(Workspace(tmp_path), UnsafeLocal(), MemoryBlobs(), MemoryBus())
    state = state_with(TestsPass(target="test_a.py::test_x"))
    assert await runner.tests_for(state, context, PlannedRun(purpose="special cases")) == ("test_a.py",)
    assert await runner.tests_for(state, context, PlannedRun(purpose="run")) == ()


async def kept(folder: Path, changes: list[FileChange], hidden: set[str]) -> tuple[list[bool], MemoryBlobs]:
    context = RunContext(Workspace(folder), UnsafeLocal(), (blobs := MemoryBlobs()), MemoryBus())
    return [bool(one.sha256) for one in await context.keep_changes(tuple(changes), hidden)], blobs


def made(folder: Path, path: str, content: bytes, *, old: bool = False) -> FileChange:
    (folder / path).parent.mkdir(exist_ok=True)
    (folder / path).write_bytes(content)
    kind = "changed" if old else "new"
    return FileChange(path=path, kind=kind, sha256=sha256(content).hexdigest(), size=len(content))


async def test_files_that_a_run_makes_are_kept_but_not_what_was_hidden_before_or_is_a_secret(
    tmp_path: Path,
) -> None:
    changes = [
        made(tmp_path, "new.txt", b"x"),
        made(tmp_path, "old.txt", b"y", old=True),
        made(tmp_path, "build/new.txt", b"z"),
        made(tmp_path, "build/old.txt", b"z", old=True),
        made(tmp_path, ".env", b"K=secret"),
        replace(made(tmp_path, "late.txt", b"x"), sha256="0" * 64),
        FileChange(path="nowhere.txt", kind="new", sha256="0" * 64, size=1),
        FileChange(path="gone.txt", kind="deleted"),
        FileChange(path="large.bin", kind="new", size=1),
    ]
    found, blobs = await kept(tmp_path, changes, {"build"})
    assert found == [True, True, True, False, False, False, False, False, False]
    assert await blobs.get(changes[0].sha256) == b"x"


async def test_as_many_files_and_bytes_are_kept_as_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MOST_KEPT", 2)
    monkeypatch.setattr(runs, "MOST_BYTES", 10)
    four = [made(tmp_path, f"{name}.txt", b"1234") for name in "ab"]
    assert (await kept(tmp_path, [*four, made(tmp_path, "c.txt", b"")], set()))[0] == [True, True, False]
    six, seven = made(tmp_path, "six.txt", b"123456"), made(tmp_path, "seven.txt", b"1234567")
    assert (await kept(tmp_path, [four[0], seven, six], set()))[0] == [True, False, True]
