"""The limits that every sandbox promises, run over every rung of this machine."""

from pathlib import Path

import anyio
import pytest
from sandboxes.jobs import python, tight

from septet.domain.runs import MEBIBYTE, Job, RunResult
from septet.ports import Sandbox
from septet.sandboxes.rungs.unsafe import UnsafeLocal

pytestmark = pytest.mark.anyio


async def stopped(sandbox: Sandbox, job: Job) -> RunResult:
    with anyio.fail_after(60):
        result = await sandbox.run(job)
    assert not result.succeeded
    return result


async def test_time_ends_also_what_ignores_signals(sandbox: Sandbox, workspace: Path) -> None:
    code = (
        "import signal, time\nfor s in (2, 15, 1): signal.signal(s, signal.SIG_IGN)\n"
        "print('on')\ntime.sleep(600)"
    )
    result = await stopped(sandbox, python(workspace, code, tight(seconds=1.0)))
    assert result.stopped_by == "time"
    assert result.stdout == "on\n"


async def test_processor_time_is_limited(sandbox: Sandbox, workspace: Path) -> None:
    result = await stopped(sandbox, python(workspace, "while True: pass", tight(cpu_seconds=1.0)))
    assert result.stopped_by == "cpu"


async def test_memory_of_one_process_is_limited(sandbox: Sandbox, workspace: Path) -> None:
    code = "a = []\nwhile True: a.append(bytearray(1 << 20))"
    result = await stopped(sandbox, python(workspace, code, tight(memory=128 * MEBIBYTE)))
    assert result.stopped_by == "memory"


async def test_memory_of_many_processes_is_limited_together(sandbox: Sandbox, workspace: Path) -> None:
    code = "import os, time\nfor _ in range(6): os.fork()\na = bytearray(30 << 20)\ntime.sleep(600)"
    result = await stopped(sandbox, python(workspace, code, tight(memory=256 * MEBIBYTE)))
    assert result.stopped_by == "memory"


async def test_processes_are_limited(sandbox: Sandbox, workspace: Path) -> None:
    """The bomb is itself bounded (2^8 processes): a limit that fails must not take the machine along."""
    if isinstance(sandbox, UnsafeLocal):
        pytest.skip("no bomb where nothing is promised to hold it")
    code = (
        "import os, time\nfor _ in range(8):\n    try: os.fork()\n    except OSError: pass\ntime.sleep(600)"
    )
    result = await stopped(sandbox, python(workspace, code, tight(processes=40)))
    assert result.stopped_by == "processes"


async def test_output_is_limited(sandbox: Sandbox, workspace: Path) -> None:
    result = await stopped(
        sandbox, Job(command=("yes",), workspace=str(workspace), limits=tight(output=MEBIBYTE))
    )
    assert result.stopped_by == "output"
    assert result.stdout.startswith("y\ny\n")


async def test_a_files_size_is_limited(sandbox: Sandbox, workspace: Path) -> None:
    code = "f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))"
    result = await stopped(sandbox, python(workspace, code, tight(file_size=4 * MEBIBYTE)))
    assert result.stopped_by == "file size"
    assert (workspace / "big").stat().st_size <= 4 * MEBIBYTE


async def test_disk_is_limited(sandbox: Sandbox, workspace: Path) -> None:
    code = "import time\nfor i in range(40):\n    open(f'f{i}', 'wb').write(bytes(1 << 20))\ntime.sleep(600)"
    result = await stopped(sandbox, python(workspace, code, tight(disk=8 * MEBIBYTE)))
    assert result.stopped_by == "disk"


async def test_open_files_are_limited(sandbox: Sandbox, workspace: Path) -> None:
    code = "files = [open('/dev/null') for _ in range(200)]"
    result = await stopped(sandbox, python(workspace, code, tight(open_files=64)))
    assert "Too many open files" in result.stderr
    assert result.stopped_by == "open files"
