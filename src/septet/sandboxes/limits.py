"""The kernel's own limits for a program, set by the shell that then becomes the program."""

import math
import os
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from septet.domain.runs import Bound, Limits
from septet.sandboxes.survey import Survey


def ulimit_script(limits: Limits, companions: int = 0) -> str:
    """A script that makes the settings which a process can only make for itself; one already tighter stays.

    Processes are counted per user and user namespace. So that they are not counted together with what the
    person runs elsewhere, this is done inside the sandbox, or by a user of its own, whose `companions` are the
    sandbox's own processes.
    """
    cpu = math.ceil(limits.cpu_seconds)
    processes = limits.processes + companions
    settings = [
        "-c 0",
        f"-S -t {cpu}",
        f"-H -t {cpu + 1}",
        f"-f {-(-limits.file_size // 512)}",
        f"-d {limits.memory >> 10}",
        f"-n {limits.open_files}",
    ]
    script = "".join(f"ulimit {setting} 2>/dev/null;" for setting in settings)
    return f"{script}ulimit -p {processes} 2>/dev/null || ulimit -u {processes} 2>/dev/null;"


def shell_command(script: str, command: Sequence[str]) -> list[str]:
    """The command, which a shell becomes after the script."""
    return ["/bin/sh", "-c", f'{script}exec "$@"', "sh", *command] if script else list(command)


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


def bytes_written(pids: tuple[int, ...]) -> int:
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


_BYTES_PER_ENTRY = 20_000
"""A gigabyte may be some 50,000 files: entries take room that no file's size shows."""

_SIGNALS: dict[int, Bound] = {128 + signal.SIGXCPU: "cpu", 128 + signal.SIGXFSZ: "file size"}
_OUT_OF_MEMORY = re.compile(r"(?:[\w.]*\bMemoryError|[\w.]*_ArrayMemoryError|std::bad_alloc)\b")
_TOO_MANY_FILES = "Too many open files"


def bound_from_exit(exit_code: int, stderr: str, after: Survey, limits: Limits) -> Bound | None:
    """A program that succeeded met no limit; one that failed did if its end says so."""
    if exit_code == 0:
        return None
    if exit_code in _SIGNALS:
        return _SIGNALS[exit_code]
    if any(stamp.size >= limits.file_size for stamp in after.files.values()):
        return "file size"
    last = _last_line(stderr)
    if _OUT_OF_MEMORY.match(last):
        return "memory"
    return "open files" if _TOO_MANY_FILES in last else None


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]


def exceeds_disk(before: Survey, after: Survey, limits: Limits) -> bool:
    """Whether a workspace grew past the limit in space or in number of entries."""
    entries = limits.disk // _BYTES_PER_ENTRY
    return after.space - before.space > limits.disk or after.entries - before.entries > entries
