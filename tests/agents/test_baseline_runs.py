"""The project's tests before any change: when the runner runs them, and when a run that began early is the result."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from team.states import chat

from septet.agents import runner
from septet.agents.run_context import RunContext, suite_limits
from septet.agents.runner import (
    EarlyBaseline,
    baseline_run,
    take_baseline,
    take_early_baseline,
)
from septet.domain.base import Manifest
from septet.domain.events import (
    BaseSurveyed,
    ChatStarted,
    Event,
    PlanProposed,
    RunFinished,
    RunStarted,
    VersionWritten,
)
from septet.domain.files import FileRef
from septet.domain.plans import Plan, Requirement, TestsPass
from septet.domain.runs import Limits, PlannedRun, RunResult
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.team.baseline import AFFECTED
from septet.workspace.files import Workspace
from septet.workspace.scratch import Scratch

pytestmark = pytest.mark.anyio
TEAM = TeamSpec(name="t", members=(), packages="off")
STARTED = ChatStarted(goal="g", team=TEAM, workspace="/w")
SURVEYED = BaseSurveyed(kind="folder", root="/w", manifest="m", tests="make test")
FINISHED = RunFinished(
    id="baseline", purpose="baseline", command="make test", tree="m", result=RunResult(exit_code=0)
)


class Log:
    """Events that are recorded, and the state that they make."""

    def __init__(self, *events: Event) -> None:
        self.before = len(events)
        self.events = [*events]

    @property
    def state(self) -> State:
        return chat(self.events)

    async def record(self, event: Event) -> State:
        self.events.append(event)
        return self.state

    @property
    def recorded(self) -> Sequence[Event]:
        return self.events[self.before :]


def context(folder: Path, *, copied: bool = True, early: RunFinished | None = None) -> RunContext:
    """Where there is no copy of a project, the workspace is the team's own."""
    place = Scratch(folder / "home", folder / "project", Manifest()) if copied else Workspace(folder)
    found = RunContext(place, UnsafeLocal(), MemoryBlobs(), MemoryBus())

    async def result(_: State) -> RunFinished | None:
        return early

    found.early_result = result
    return found


@pytest.mark.parametrize(
    ("surveyed", "team_tests", "command"),
    [
        (SURVEYED, "", "make test"),
        (replace(SURVEYED, tests="pytest"), "", "python -m pytest"),
        (replace(SURVEYED, tests=""), "make check", "make check"),
        (replace(SURVEYED, tests=""), "", None),
        (None, "make check", None),
    ],
)
def test_the_base_is_tested_where_it_has_tests(
    surveyed: BaseSurveyed | None, team_tests: str, command: str | None
) -> None:
    started = replace(STARTED, team=replace(TEAM, tests=team_tests))
    run = baseline_run(chat([started, *([surveyed] if surveyed else [])]))
    assert (run and run.command.startswith(command or "")) == (None if command is None else True)
    if run is not None:
        assert (run.id, run.purpose, run.tree) == ("baseline", "baseline", "m")


def test_the_base_is_tested_once() -> None:
    assert baseline_run(chat([STARTED, SURVEYED, FINISHED])) is None


async def test_a_result_that_is_there_early_is_recorded_and_nothing_is_run(tmp_path: Path) -> None:
    log = Log(STARTED, SURVEYED)
    after = await take_baseline("runner", log.state, log.record, context(tmp_path, early=FINISHED))
    assert [type(one) for one in log.recorded] == [RunStarted, RunFinished]
    assert log.recorded[1] == FINISHED
    assert after.base is not None
    assert after.base.baseline is not None
    assert await take_baseline("runner", after, log.record, context(tmp_path, early=FINISHED)) is after
    assert len(log.recorded) == 2


async def test_nothing_is_tested_without_a_copy_of_the_project(tmp_path: Path) -> None:
    log = Log(STARTED, SURVEYED)
    state = log.state
    own = context(tmp_path, copied=False, early=FINISHED)
    assert await take_baseline("runner", state, log.record, own) is state
    assert log.recorded == []


async def test_in_the_middle_of_a_turn_only_a_result_that_is_there_is_recorded(tmp_path: Path) -> None:
    log = Log(STARTED, SURVEYED)
    state = log.state
    assert await take_early_baseline(state, log.record, context(tmp_path)) is state
    never = context(tmp_path)
    never.early_result = None
    assert await take_early_baseline(state, log.record, never) is state
    assert log.recorded == []
    await take_early_baseline(state, log.record, context(tmp_path, early=FINISHED))
    assert [type(one) for one in log.recorded] == [RunStarted, RunFinished]
    again = log.state
    assert await take_early_baseline(again, log.record, context(tmp_path, early=FINISHED)) is again
    assert len(log.recorded) == 2


async def test_an_early_run_needs_a_copy_of_the_project(tmp_path: Path) -> None:
    state = chat([STARTED, SURVEYED])
    early = EarlyBaseline(context(tmp_path, copied=False))
    assert await early.result(state) is None, "it has not begun"
    early.start(state)
    assert await early.result(state) is None, "there is no copy of the project"
    await early.cancel()


async def test_an_early_run_that_is_cancelled_has_no_result(tmp_path: Path) -> None:
    state = chat([STARTED, SURVEYED])
    early, before = EarlyBaseline(context(tmp_path)), asyncio.all_tasks()
    await early.cancel()
    early.start(state)
    early.start(state)
    await early.cancel()
    assert await early.result(state) is None
    assert asyncio.all_tasks() == before


async def test_an_early_run_that_fails_has_no_result_and_the_others_count_only_for_what_they_ran_over(
    tmp_path: Path,
) -> None:
    quiet = replace(STARTED, team=replace(TEAM, tests="true"))
    run_context = context(tmp_path)
    assert run_context.scratch is not None
    state = chat([quiet, SURVEYED])
    fails = EarlyBaseline(run_context)
    fails.start(state)
    assert await fails.result(state) is None, "the base is not there"
    run_context.scratch.base.root.mkdir(parents=True)
    (tmp_path / "project").mkdir()
    early = EarlyBaseline(run_context)
    early.start(state)
    other = chat([replace(quiet, team=replace(TEAM, tests="false")), SURVEYED])
    assert await early.result(other) is None, "another command"
    await early.cancel()


TESTS = PlannedRun(purpose="tests", about=AFFECTED)
CHECKED = Plan(items=(Requirement(id="P1", text="x", check=TestsPass(target="test_own.py::test_x")),))


def written(*paths: str, deleted: tuple[str, ...] = ()) -> VersionWritten:
    return VersionWritten(
        number=1,
        tree="t",
        files=tuple(FileRef(path=path, sha256="1", size=1) for path in paths),
        deleted=deleted,
    )


@pytest.mark.parametrize(
    ("version", "only"),
    [
        (written("a.py"), ("test_a.py", "test_own.py::test_x")),
        (written("test_own.py"), ("test_own.py",)),
        (written("b.py"), ("test_own.py::test_x",)),
        (written(deleted=("a.py",)), ("test_a.py", "test_own.py::test_x")),
    ],
)
async def test_a_long_suite_runs_what_a_change_affects_and_what_the_plan_names(
    tmp_path: Path, version: VersionWritten, only: tuple[str, ...]
) -> None:
    run_context = context(tmp_path)
    assert run_context.scratch is not None
    for folder in (run_context.scratch.base.root, run_context.scratch.work.root):
        folder.mkdir(parents=True)
        for name, text in {
            "a.py": "",
            "b.py": "",
            "test_a.py": "import a\n",
            "test_own.py": "import c\n",
        }.items():
            (folder / name).write_text(text)
    state = chat([STARTED, replace(SURVEYED, tests="pytest"), PlanProposed(plan=CHECKED), version])
    assert await runner.tests_for(state, run_context, TESTS) == only
    assert await runner.tests_for(state, run_context, replace(TESTS, about="")) == ()
    assert await runner.tests_for(state, context(tmp_path, copied=False), TESTS) == ()


@pytest.mark.parametrize(
    ("own", "took", "seconds", "cpu_seconds"),
    [
        (Limits(seconds=10, cpu_seconds=5), None, 600, 600),
        (Limits(seconds=700, cpu_seconds=650), None, 700, 700),
        (Limits(seconds=10, cpu_seconds=5), 8.0, 16, 16),
        (Limits(seconds=10, cpu_seconds=20), 8.0, 16, 20),
        (Limits(seconds=10, cpu_seconds=5), 5.0, 10, 10),
    ],
)
def test_a_suite_has_minutes_and_then_twice_the_time_that_it_took(
    own: Limits, took: float | None, seconds: float, cpu_seconds: float
) -> None:
    started = replace(STARTED, team=replace(TEAM, limits=own))
    assert suite_limits(chat([started])) == own, "there is no project"
    result = RunResult(exit_code=0, seconds=took or 0.0)
    ran = [] if took is None else [replace(FINISHED, result=result)]
    found = suite_limits(chat([started, SURVEYED, *ran]))
    assert (found.seconds, found.cpu_seconds) == (seconds, cpu_seconds)
