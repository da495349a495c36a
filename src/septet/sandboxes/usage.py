"""What a tree of processes uses right now, read from /proc."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """`memory` counts shared pages once per process: an upper bound."""

    pids: tuple[int, ...] = ()
    tasks: int = 0
    cpu_seconds: float = 0.0
    memory: int = 0


def usage_of(leader: int) -> Usage:
    """The sum over the leader and everything below it; whoever ends meanwhile is left out."""
    pids = tuple(_tree(leader))
    tasks = memory = ticks = 0
    for pid in pids:
        fields = _stat(pid)
        if fields:
            ticks += sum(int(field) for field in fields[11:15])
            tasks += int(fields[17])
            memory += int(fields[21]) * _PAGE
    return Usage(pids, tasks, ticks / _TICKS, memory)


def proportional_memory(pids: tuple[int, ...]) -> int | None:
    """Memory with shared pages divided among their users; None where the kernel does not tell."""
    total = 0
    for pid in pids:
        text = _read(_PROC / str(pid) / "smaps_rollup")
        if text:
            total += sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:"))
        elif _stat(pid):
            return None
    return total


def written(pids: tuple[int, ...]) -> int:
    """Bytes that the processes, and their children that ended, caused to be written to disks."""
    total = 0
    for pid in pids:
        for line in _read(_PROC / str(pid) / "io").splitlines():
            if line.startswith("write_bytes:"):
                total += int(line.split()[1])
    return total


def _tree(leader: int) -> Iterator[int]:
    waiting = [leader]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children(pid)


def children(pid: int) -> Iterator[int]:
    tasks = _PROC / str(pid) / "task"
    try:
        threads = list(tasks.iterdir())
    except OSError:
        return
    for thread in threads:
        yield from map(int, _read(thread / "children").split())


def _stat(pid: int) -> list[str]:
    """The fields after the command's name, which may itself hold spaces and brackets."""
    return _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
