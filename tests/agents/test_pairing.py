"""The cells that a kernel is rebuilt from: those that ran well since it was last told to forget."""

from pathlib import Path

import pytest

from septet.agents.records import Rehearsal
from septet.domain.events import (
    ChatStarted,
    Event,
    ModelAnswered,
    Recorded,
    ReplyRefused,
    RunFinished,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import FileRef, tree_of
from septet.domain.reduce import fold, reduce_work
from septet.domain.runs import Cell, RunResult
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.models.providers.scripted import Script, ScriptedModel, ScriptedTurn
from septet.runtime.bus import MemoryBus
from septet.stores.blobs import FolderBlobs
from septet.ways.pair.briefing import FORGET
from septet.ways.pair.members import cell_of, coder_agent, good_cells
from septet.ways.table import TEAMS

pytestmark = pytest.mark.anyio


async def after(blobs: FolderBlobs, *steps: tuple[str, int | None]) -> State:
    """A chat in which this code was sent and ended like that; None is not run yet."""
    state = State()
    for number, (code, ended) in enumerate(steps, start=1):
        address = await blobs.put(code.encode())
        files = (FileRef(path="main.py", sha256=address, size=len(code)),)
        version = VersionWritten(number=number, files=files, tree=tree_of(files))
        state = reduce_work(state, version)
        if ended is not None:
            result = RunResult(exit_code=ended)
            run = RunFinished(
                id=f"v{number} run", purpose="run", command="", tree=version.tree, result=result, mode="cell"
            )
            state = reduce_work(state, run)
    return state


async def test_failed_cells_are_left_out(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    state = await after(blobs, ("x = 1\n", 0), ("x = y\n", 1), ("x += 1\n", 0), ("x\n", None))
    assert await good_cells(state, blobs) == ["x = 1\n", "x += 1\n"]
    assert await cell_of(state, blobs) == Cell(code="x\n", earlier=("x = 1\n", "x += 1\n"))


async def test_a_cell_that_restarts_the_kernel_has_nothing_before_it(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    fresh = f"{FORGET}\nz = 3\n"
    waiting = await after(blobs, ("x = 1\n", 0), (fresh, None))
    assert await cell_of(waiting, blobs) == Cell(code=fresh)
    state = await after(blobs, ("x = 1\n", 0), (fresh, 0), ("z\n", None))
    assert await cell_of(state, blobs) == Cell(code="z\n", earlier=(fresh,))


async def first_turn(words: str, folder: Path) -> list[Event]:
    """What comes of these words as the coder's first in a pair."""
    begun = [ChatStarted(goal="add", team=TEAMS["pair"], workspace=""), TurnOpened(speaker="coder")]
    state = fold(Recorded(chat="c", seq=seq, at=0.0, event=event) for seq, event in enumerate(begun, start=1))
    model = ScriptedModel(Script(turns=(ScriptedTurn(role="coder", say=words),)), "first")
    agent = coder_agent(RoleSpec(name="coder", role="coder"), model, MemoryBus(), FolderBlobs(folder))
    rehearsal = Rehearsal(state)
    await rehearsal.play(agent)
    return rehearsal.events


async def test_the_first_message_may_be_a_plan_but_code_in_it_is_not_passed_over(tmp_path: Path) -> None:
    (said,) = await first_turn("1. Read the file.", tmp_path)
    assert isinstance(said, ModelAnswered)
    _, refused = await first_turn("1. Read it:\n```python main.py\nopen('a')", tmp_path)
    assert isinstance(refused, ReplyRefused)
    assert "never closed" in refused.reason
