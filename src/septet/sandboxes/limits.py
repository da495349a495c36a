"""The limits of a run and how each is enforced: one entry of `ENFORCEMENTS` for each limit."""

import math
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from septet.domain.runs import LimitName, Limits
from septet.sandboxes.survey import Survey


def shell_command(script: str, command: Sequence[str]) -> list[str]:
    """A shell command that runs the script and then execs the command."""
    return ["/bin/sh", "-c", f'{script}exec "$@"', "sh", *command] if script else list(command)


_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """`memory` counts shared pages once per process: an upper bound."""

    pids: tuple[int, ...] = ()
    tasks: int = 0
    cpu_seconds: float = 0.0
    memory: int = 0


def usage_of(leader: int) -> ResourceUsage:
    """The usage of the leader and all its descendants; processes that end meanwhile are left out."""
    pids = tuple(_tree(leader))
    tasks = memory = ticks = 0
    for pid in pids:
        fields = _stat(pid)
        if fields:
            ticks += sum(int(field) for field in fields[11:15])
            tasks += int(fields[17])
            memory += int(fields[21]) * _PAGE_BYTES
    return ResourceUsage(pids, tasks, ticks / _TICKS_PER_SECOND, memory)


def proportional_memory(pids: tuple[int, ...]) -> int | None:
    """Memory with shared pages divided among their users; None if the kernel does not report it."""
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
    queue = [leader]
    while queue:
        pid = queue.pop()
        yield pid
        queue += children(pid)


def children(pid: int) -> Iterator[int]:
    tasks = _PROC / str(pid) / "task"
    try:
        threads = list(tasks.iterdir())
    except OSError:
        return
    for thread in threads:
        yield from map(int, _read(thread / "children").split())


def _stat(pid: int) -> list[str]:
    """The fields after the command's name, which may itself contain spaces and brackets."""
    return _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


_BYTES_PER_ENTRY = 20_000
"""A gigabyte may be some 50,000 files: entries take space that no file size shows."""

OWN_PROCESSES = 8
"""The sandbox's own processes share a control group with the program: the kernel's limit is this much higher, so that
the monitor reaches the program's limit first and can name it."""

_OUT_OF_MEMORY = re.compile(r"(?:[\w.]*\bMemoryError|[\w.]*_ArrayMemoryError|std::bad_alloc)\b")
_TOO_MANY_FILES = "Too many open files"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a failed program ended, and its workspace afterwards."""

    exit_code: int
    last_line: str
    workspace: Survey


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforcement:
    """How one limit is enforced, in one or more ways.

    `ulimit` are settings of the shell that execs the program, `group` are the values of control-group files (of both
    versions), `is_exceeded` is polled while the program runs, and `explains` tells from the end of a failed program
    whether it reached this limit.
    """

    limit: LimitName
    ulimit: Callable[[Limits], Sequence[str]] = lambda limits: ()
    group: Callable[[Limits], Mapping[str, str]] = lambda limits: {}
    is_exceeded: Callable[[ResourceUsage, Limits], bool] = lambda usage, limits: False
    explains: Callable[[Ending, Limits], bool] = lambda ending, limits: False


def _cpu_settings(limits: Limits) -> Sequence[str]:
    seconds = math.ceil(limits.cpu_seconds)
    return (f"-S -t {seconds}", f"-H -t {seconds + 1}")


def _memory_group(limits: Limits) -> Mapping[str, str]:
    """Swap comes last, because the kernel refuses a value below the memory limit."""
    memory = str(limits.memory)
    return {
        "memory.max": memory,
        "memory.swap.max": "0",
        "memory.oom.group": "0",
        "memory.limit_in_bytes": memory,
        "memory.memsw.limit_in_bytes": memory,
    }


def _exceeds_memory(usage: ResourceUsage, limits: Limits) -> bool:
    """The quick count includes shared pages several times, so the exact one decides."""
    if usage.memory <= limits.memory:
        return False
    exact = proportional_memory(usage.pids)
    return exact is None or exact > limits.memory


def _explains_file_size(ending: Ending, limits: Limits) -> bool:
    largest = max((stamp.size for stamp in ending.workspace.files.values()), default=0)
    return ending.exit_code == 128 + signal.SIGXFSZ or largest >= limits.file_size


ENFORCEMENTS = (
    Enforcement(
        limit="cpu",
        ulimit=_cpu_settings,
        is_exceeded=lambda usage, limits: usage.cpu_seconds > limits.cpu_seconds,
        explains=lambda ending, limits: ending.exit_code == 128 + signal.SIGXCPU,
    ),
    Enforcement(
        limit="processes",
        group=lambda limits: {"pids.max": str(limits.processes + OWN_PROCESSES)},
        is_exceeded=lambda usage, limits: usage.tasks >= limits.processes,
    ),
    Enforcement(
        limit="file size",
        ulimit=lambda limits: (f"-f {-(-limits.file_size // 512)}",),
        explains=_explains_file_size,
    ),
    Enforcement(
        limit="memory",
        ulimit=lambda limits: (f"-d {limits.memory >> 10}",),
        group=_memory_group,
        is_exceeded=_exceeds_memory,
        explains=lambda ending, limits: _OUT_OF_MEMORY.match(ending.last_line) is not None,
    ),
    Enforcement(
        limit="open files",
        ulimit=lambda limits: (f"-n {limits.open_files}",),
        explains=lambda ending, limits: _TOO_MANY_FILES in ending.last_line,
    ),
)
"""Limits enforced by the kernel or by polling; the monitor measures time and output, surveys measure disk."""


def ulimit_script(limits: Limits, own_processes: int = 0) -> str:
    """A shell script that sets the limits of its own process; a lower existing limit stays.

    The kernel counts processes per user and user namespace. The script runs inside the sandbox, or as a separate user,
    so that the person's other processes are not counted; a separate user also has the sandbox's `own_processes`.
    """
    processes = limits.processes + own_processes
    settings = ["-c 0", *(setting for enforcement in ENFORCEMENTS for setting in enforcement.ulimit(limits))]
    script = "".join(f"ulimit {setting} 2>/dev/null;" for setting in settings)
    return f"{script}ulimit -p {processes} 2>/dev/null || ulimit -u {processes} 2>/dev/null;"


def group_values(limits: Limits) -> dict[str, str]:
    """The files of a control group, of both versions, and their values."""
    return {name: value for enforcement in ENFORCEMENTS for name, value in enforcement.group(limits).items()}


def exceeded_limits(usage: ResourceUsage, limits: Limits) -> Iterator[LimitName]:
    return (enforcement.limit for enforcement in ENFORCEMENTS if enforcement.is_exceeded(usage, limits))


def limit_from_exit(exit_code: int, stderr: str, after: Survey, limits: Limits) -> LimitName | None:
    """The limit that a failed program reached, by its exit code, last line or files; None if it succeeded."""
    if exit_code == 0:
        return None
    ending = Ending(exit_code, stderr.rstrip().rpartition("\n")[2], after)
    return next(
        (enforcement.limit for enforcement in ENFORCEMENTS if enforcement.explains(ending, limits)), None
    )


def exceeds_disk(before: Survey, after: Survey, limits: Limits) -> bool:
    """Whether a workspace grew past the limit in space or in number of entries."""
    entries = limits.disk // _BYTES_PER_ENTRY
    return after.space - before.space > limits.disk or after.entries - before.entries > entries
