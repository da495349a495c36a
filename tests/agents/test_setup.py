"""Which command sets up the copies of a project: once, as it was allowed, and before the tests were first run."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from scenarios.folders.chats import fold_events

from septet.agents.records import Rehearsal
from septet.agents.run_context import RunContext
from septet.agents.runner import open_setup, provide, set_up
from septet.domain.base import Manifest
from septet.domain.events import (
    BaseSurveyed,
    ChatStarted,
    Event,
    PackagesDecided,
    PackagesInstalled,
    PackagesWanted,
    RunFinished,
)
from septet.domain.packages import Installation, MissingPackages, Policy
from septet.domain.runs import Job, RunResult
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.ports import Record
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.workspace.scratch import Scratch

pytestmark = pytest.mark.anyio
SETUP = "make environment"
ALLOWED = PackagesDecided(names=(SETUP,), allowed=True, by="flag")
REFUSED = PackagesDecided(names=(SETUP,), allowed=False, by="flag")
TESTED = RunFinished(id="r", purpose="baseline", command="pytest", tree="", result=RunResult(exit_code=0))


async def opened(folder: Path, *events: Event, policy: Policy = "ask", command: str = SETUP) -> str:
    project = folder / "project"
    project.mkdir(parents=True)
    team = TeamSpec(name="t", members=(), setup=command, packages=policy)
    started = [ChatStarted(goal="g", team=team, workspace=str(project))]
    state = fold_events([*started, BaseSurveyed(kind="folder", root=str(project)), *events])
    scratch = Scratch(folder / "home", project, Manifest())
    return await open_setup(state, RunContext(scratch, UnsafeLocal(), MemoryBlobs(), MemoryBus()))


@pytest.mark.parametrize(
    ("events", "command"),
    [
        ((), SETUP),
        ((ALLOWED,), SETUP),
        ((REFUSED,), ""),
        ((REFUSED, ALLOWED), SETUP),
        ((TESTED,), ""),
        ((ALLOWED, TESTED), ""),
        ((REFUSED, ALLOWED, TESTED), SETUP),
    ],
)
async def test_a_setup_that_was_refused_or_comes_after_the_first_tests_is_not_run(
    tmp_path: Path, events: tuple[Event, ...], command: str
) -> None:
    assert await opened(tmp_path, *events) == command


async def test_nothing_is_set_up_where_no_command_is_or_packages_are_off(tmp_path: Path) -> None:
    assert await opened(tmp_path, command="") == ""
    assert await opened(tmp_path / "off", policy="off") == ""


class Shelf:
    """Everything imported is missing and can be had."""

    async def find_missing(self, workspace: str, sources: Mapping[str, str]) -> MissingPackages:
        return MissingPackages(distributions=tuple(sources))

    async def install(self, workspace: str, missing: MissingPackages) -> Installation:
        return Installation(installed=tuple(sorted(missing.names)))

    def setup_job(self, job: Job) -> Job:
        return job


WANTED = PackagesWanted(missing=MissingPackages(distributions=("numpy",)))
GIVEN = PackagesDecided(names=("numpy",), allowed=True, by="policy")
HAD = PackagesInstalled(installation=Installation(installed=("numpy",)))


@pytest.mark.parametrize(
    ("policy", "before", "follows"),
    [
        ("off", [], []),
        ("ask", [], [WANTED]),
        ("ask", [WANTED], []),
        ("ask", [WANTED, PackagesDecided(names=("numpy",), allowed=True)], [HAD]),
        ("ask", [WANTED, PackagesDecided(names=("numpy",), allowed=False)], []),
        ("auto", [], [WANTED, GIVEN, HAD]),
        ("auto", [WANTED, GIVEN], [HAD]),
        ("auto", [WANTED, GIVEN, HAD], []),
    ],
)
async def test_what_is_missing_is_installed_once_and_as_the_policy_says(
    tmp_path: Path, policy: Policy, before: list[Event], follows: list[Event]
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    scratch = Scratch(tmp_path / "home", project, Manifest())
    run_context = RunContext(scratch, UnsafeLocal(), MemoryBlobs(), MemoryBus(), packages=Shelf())
    team = TeamSpec(name="t", members=(), packages=policy)
    state = fold_events([ChatStarted(goal="g", team=team, workspace=str(project)), *before])

    async def import_numpy(state: State, record: Record) -> None:
        await provide(state, record, run_context, {"numpy": ""})

    rehearsal = Rehearsal(state)
    await rehearsal.play(import_numpy)
    assert rehearsal.events == follows


@pytest.mark.parametrize(
    ("needs", "survey", "team", "follows"),
    [
        ("numpy", {}, {}, [WANTED, GIVEN, HAD]),
        ("", {}, {}, []),
        ("numpy", {"interpreter": "/p/.venv/bin/python"}, {}, []),
        ("numpy", {}, {"tests": "make test"}, []),
        ("numpy", {}, {"packages": "off"}, []),
    ],
)
async def test_a_project_whose_setup_failed_gets_what_it_says_that_it_needs_unless_it_has_an_environment(
    tmp_path: Path, needs: str, survey: dict[str, str], team: dict[str, str], follows: list[Event]
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    scratch = Scratch(tmp_path / "home", project, Manifest())
    scratch.base.root.mkdir(parents=True)
    (scratch.base.root / "requirements.txt").write_text(needs)
    scratch.start_setup()
    scratch.finish_setup(succeeded=False)
    run_context = RunContext(scratch, UnsafeLocal(), MemoryBlobs(), MemoryBus(), packages=Shelf())
    spec = replace(TeamSpec(name="t", members=(), packages="auto"), **team)
    surveyed = replace(BaseSurveyed(kind="folder", root=str(project)), **survey)
    state = fold_events([ChatStarted(goal="g", team=spec, workspace=str(project)), surveyed])
    rehearsal = Rehearsal(state)

    async def begin(state: State, record: Record) -> None:
        await set_up(state, record, run_context)

    await rehearsal.play(begin)
    assert rehearsal.events == follows
