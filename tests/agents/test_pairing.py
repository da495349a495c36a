"""The cells that a kernel is rebuilt from: those that ran well since it was last told to forget."""

from pathlib import Path

import pytest

from septet.agents.pairing import cell_of, good_cells
from septet.domain.events import RunFinished, VersionWritten
from septet.domain.files import FileRef, tree_of
from septet.domain.reduce import reduce_work
from septet.domain.runs import Cell, RunResult
from septet.domain.state import State
from septet.stores.blobs import FolderBlobs
from septet.team.pairing import FORGET

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
