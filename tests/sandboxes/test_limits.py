"""The limits that every sandbox promises, run over every rung of this machine."""

import signal
from pathlib import Path

import anyio
import pytest
from sandboxes.jobs import python, tight

from septet.domain.runs import MEBIBYTE, Job, Limits, RunResult
from septet.ports import Sandbox
from septet.sandboxes import limits
from septet.sandboxes.limits import (
    ResourceUsage,
    bytes_written,
    exceeded_limits,
    group_values,
    limit_from_exit,
    proportional_memory,
    ulimit_script,
    usage_of,
)
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.sandboxes.survey import FileStamp, Survey

pytestmark = pytest.mark.anyio


async def stopped(sandbox: Sandbox, job: Job) -> RunResult:
    with anyio.fail_after(120):
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


LIMITS = Limits(
    seconds=9.0,
    cpu_seconds=1.2,
    memory=64 * MEBIBYTE,
    processes=20,
    open_files=30,
    file_size=1000,
    disk=1 << 20,
)


def test_a_shell_sets_the_limits_of_its_own_process() -> None:
    settings = ["-c 0", "-S -t 2", "-H -t 3", "-f 2", "-d 65536", "-n 30"]
    script = "".join(f"ulimit {one} 2>/dev/null;" for one in settings)
    assert ulimit_script(LIMITS) == f"{script}ulimit -p 20 2>/dev/null || ulimit -u 20 2>/dev/null;"
    assert ulimit_script(LIMITS, 8).endswith("ulimit -p 28 2>/dev/null || ulimit -u 28 2>/dev/null;")
    exact = Limits(cpu_seconds=2.0, file_size=1024)
    assert "ulimit -S -t 2 2>/dev/null;ulimit -H -t 3 2>/dev/null;ulimit -f 2 " in ulimit_script(exact)


def test_a_control_group_gets_the_limits_in_the_order_that_the_kernel_takes() -> None:
    assert [*group_values(LIMITS).items()] == [
        ("pids.max", "28"),
        ("memory.max", "67108864"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "0"),
        ("memory.limit_in_bytes", "67108864"),
        ("memory.memsw.limit_in_bytes", "67108864"),
    ]


@pytest.mark.parametrize(
    ("usage", "exceeded"),
    [
        (ResourceUsage(), []),
        (ResourceUsage(cpu_seconds=1.2), []),
        (ResourceUsage(cpu_seconds=1.3), ["cpu"]),
        (ResourceUsage(tasks=19), []),
        (ResourceUsage(tasks=20), ["processes"]),
        (ResourceUsage(memory=64 * MEBIBYTE), []),
        (ResourceUsage(memory=64 * MEBIBYTE + 1), []),  # nobody is left to be counted exactly
        (ResourceUsage(cpu_seconds=9.0, tasks=99), ["cpu", "processes"]),
    ],
)
def test_a_limit_is_exceeded_behind_it_and_processes_at_it(usage: ResourceUsage, exceeded: list[str]) -> None:
    assert [*exceeded_limits(usage, LIMITS)] == exceeded


def files_of(size: int) -> Survey:
    return Survey({b"a": FileStamp(1, 0, 0, 1), b"b": FileStamp(size, 0, 0, 2)}, 0, 2)


@pytest.mark.parametrize(
    ("code", "stderr", "largest", "limit"),
    [
        (0, "MemoryError", 1000, None),
        (1, "", 0, None),
        (1, "", 999, None),
        (1, "", 1000, "file size"),
        (128 + signal.SIGXFSZ, "", 0, "file size"),
        (128 + signal.SIGXCPU, "", 0, "cpu"),
        (1, "Traceback\nMemoryError: no\n\n", 0, "memory"),
        (1, "numpy._core._exceptions._ArrayMemoryError: x", 0, "memory"),
        (134, "terminate called\nstd::bad_alloc", 0, "memory"),
        (1, "MemoryError\nValueError: x", 0, None),
        (1, "I saw a MemoryError", 0, None),
        (1, "OSError: [Errno 24] Too many open files: 'x'", 0, "open files"),
    ],
)
def test_the_limit_that_a_failed_program_met_is_read_off_its_end(
    code: int, stderr: str, largest: int, limit: str | None
) -> None:
    assert limit_from_exit(code, stderr, files_of(largest), LIMITS) == limit


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc with the tree 10 → 11, 12 → 13; 12 has two threads, and 13 is gone."""
    monkeypatch.setattr(limits, "_PROC", tmp_path)
    monkeypatch.setattr(limits, "_PAGE_BYTES", 1000)
    monkeypatch.setattr(limits, "_TICKS_PER_SECOND", 10)
    kin = {10: {10: "11 12"}, 11: {11: ""}, 12: {12: "", 120: "13"}}
    for pid, threads in kin.items():
        for thread, children in threads.items():
            (tmp_path / f"{pid}/task/{thread}").mkdir(parents=True)
            (tmp_path / f"{pid}/task/{thread}/children").write_text(children)
        fields = ["S", *["0"] * 10, "1", "2", "3", "4", "0", "0", str(len(threads)), *["0"] * 3, "5", "0"]
        (tmp_path / f"{pid}/stat").write_text(f"{pid} (a) b ({pid}) {' '.join(fields)}\n")
        (tmp_path / f"{pid}/io").write_text("read_bytes: 9\nwrite_bytes: 100\ncancelled_write_bytes: 7\n")
        (tmp_path / f"{pid}/smaps_rollup").write_text("x\nRss: 99 kB\nPss: 2 kB\nPss_Anon: 1 kB\nPss: 1 kB\n")
    return tmp_path


def test_what_a_tree_of_processes_uses_is_added_up(machine: Path) -> None:
    assert usage_of(10) == ResourceUsage((10, 12, 13, 11), tasks=4, cpu_seconds=3.0, memory=15_000)
    assert [*limits.children(12)] == [13]
    assert [*limits.children(99)] == []
    assert bytes_written((10, 12, 13, 11)) == 300
    assert proportional_memory((10, 12, 13, 11)) == 9 * 1024
    (machine / "11" / "smaps_rollup").unlink()
    assert proportional_memory((10, 11)) is None, "it lives and does not say"


@pytest.mark.parametrize(("most", "exceeded"), [(9 * 1024, []), (9 * 1024 - 1, ["memory"])])
def test_memory_is_counted_exactly_before_a_program_is_stopped_for_it(
    machine: Path, most: int, exceeded: list[str]
) -> None:
    assert machine
    usage = usage_of(10)
    assert [*exceeded_limits(usage, Limits(memory=most))] == exceeded
    assert [*exceeded_limits(usage, Limits(memory=usage.memory))] == []
