"""What is bubblewrap's own: who a program is outside, and how many identities are kept."""

import os
from pathlib import Path

import anyio
import pytest
from sandboxes.processes import processes_with

from septet.domain.runs import Job
from septet.sandboxes.rungs.bubblewrap import Bubblewrap

pytestmark = pytest.mark.anyio

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root's programs need another user")


@as_root
async def test_a_program_started_by_root_is_not_root_outside(tmp_path: Path) -> None:
    mark = tmp_path.name
    users: set[int] = set()

    def listen(stream: str, piece: bytes) -> None:
        users.update(Path(f"/proc/{pid}").stat().st_uid for pid in processes_with(f"ready\0{mark}"))

    code = "import sys, time; print(sys.argv[1], flush=True); time.sleep(0.2)"
    command = ("python", "-c", code, "ready", mark)
    result = await Bubblewrap.detect().run(Job(command=command, workspace=str(tmp_path)), listen)
    assert result.succeeded, result
    assert users
    assert min(users - {0}) > 1_000_000_000


@as_root
async def test_runs_that_begin_together_share_one_identity(tmp_path: Path) -> None:
    sandbox = Bubblewrap.detect()
    job = Job(command=("true",), workspace=str(tmp_path))
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(sandbox.run, job)
    await sandbox.run(job)
    assert len(sandbox.users.users) == 1


@as_root
async def test_a_workspace_of_somebody_else_stays_theirs(tmp_path: Path) -> None:
    os.chown(tmp_path, 4321, 4321)
    result = await Bubblewrap.detect().run(Job(command=("touch", "made"), workspace=str(tmp_path)))
    assert result.succeeded, result
    assert (tmp_path / "made").stat().st_uid == 4321
