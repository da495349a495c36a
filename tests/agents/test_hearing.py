"""What a run says is whole somewhere: in its result, or in a blob where the result has only head and tail."""

from pathlib import Path

import pytest

from septet.agents.run_context import RunContext
from septet.domain.runs import Job, Limits, RunResult
from septet.domain.state import State
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio

SAYS = "import sys; print('x' * 30_000 + 'middle' + 'x' * 30_000); print('short', file=sys.stderr)"


async def heard(folder: Path, limits: Limits) -> tuple[RunResult, MemoryBlobs]:
    blobs = MemoryBlobs()
    run_context = RunContext(Workspace(folder), UnsafeLocal(), blobs, MemoryBus())
    job = Job(command=("python", "-c", SAYS), workspace=str(folder), limits=limits)
    return await run_context.run_live(job, State(chat="chat"), "runner"), blobs


async def test_what_is_cut_in_the_result_is_whole_in_a_blob(tmp_path: Path) -> None:
    result, blobs = await heard(tmp_path, Limits(kept_output=1000))
    assert "middle" not in result.stdout
    assert await blobs.get(result.stdout_blob) == b"x" * 30_000 + b"middle" + b"x" * 30_000 + b"\n"
    assert (result.stderr, result.stderr_blob) == ("short\n", "")


async def test_what_is_whole_in_the_result_needs_no_blob(tmp_path: Path) -> None:
    result, _ = await heard(tmp_path, Limits())
    assert "middle" in result.stdout
    assert (result.stdout_blob, result.stderr_blob) == ("", "")


@pytest.mark.parametrize(("limit", "blob"), [(60_007, False), (60_006, True)])
async def test_what_is_just_as_long_as_is_kept_needs_no_blob(tmp_path: Path, limit: int, blob: bool) -> None:
    result, _ = await heard(tmp_path, Limits(kept_output=limit))
    assert bool(result.stdout_blob) is blob
    assert ("left out" in result.stdout) is blob


async def test_no_more_than_the_limit_is_kept(tmp_path: Path) -> None:
    result, blobs = await heard(tmp_path, Limits(kept_output=1000, output=20_000))
    assert result.stopped_by == "output"
    assert await blobs.get(result.stdout_blob) == b"x" * 20_000
