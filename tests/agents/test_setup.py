"""Which command sets up the copies of a project: once, as it was allowed, and before the tests were first run."""

from pathlib import Path

import pytest
from scenarios.folders.chats import fold_events

from septet.agents.run_context import RunContext
from septet.agents.runner import open_setup
from septet.domain.base import Manifest
from septet.domain.events import BaseSurveyed, ChatStarted, Event, PackagesDecided, RunFinished
from septet.domain.packages import Policy
from septet.domain.runs import RunResult
from septet.domain.teams import TeamSpec
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
