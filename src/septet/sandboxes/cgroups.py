"""Control groups: the kernel limits the processes and memory of a whole run, if we may create groups."""

import os
import signal
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from shlex import quote

from septet.domain.runs import LimitName, Limits
from septet.errors import SandboxFailed
from septet.sandboxes.limits import group_values

_MOUNTS = Path("/proc/self/mountinfo")
_MEMBERSHIPS = Path("/proc/self/cgroup")
_CONTROLLERS = ("pids", "memory")

_KILL_ATTEMPTS = 2000
_UNLIMITED = {"pids.max": "max", "memory.max": "max", "memory.limit_in_bytes": "-1"}
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The groups of one run: one for both controllers (version 2) or one for each (version 1). May be empty."""

    folders: tuple[Path, ...] = ()

    @property
    def counts_processes(self) -> bool:
        return any((folder / "pids.max").exists() for folder in self.folders)

    @property
    def counts_memory(self) -> bool:
        return any((folder / "memory.stat").exists() for folder in self.folders)

    def limit(self, limits: Limits) -> None:
        """Set the limits. Raises SandboxFailed if that fails, because the run would be unlimited."""
        for folder in self.folders:
            if not _write_values(folder, group_values(limits)):
                raise SandboxFailed(f"the control group {folder.name} accepts no limits", "septet doctor")

    def enter_script(self) -> str:
        """A shell script that moves its shell into the group."""
        files = [quote(str(folder / "cgroup.procs")) for folder in self.folders]
        return "".join(f"echo $$ >{file} || exit 125;" for file in files)

    def limit_hit(self) -> LimitName | None:
        """The limit that the group has reached, if any."""
        for folder in self.folders:
            if _read_count(folder / "pids.events", "max"):
                return "processes"
            if _read_count(folder / "memory.events", "oom_kill") or _read_count(
                folder / "memory.oom_control", "oom_kill"
            ):
                return "memory"
        return None

    def remove(self) -> None:
        """Kill the processes in the groups, then remove the groups."""
        for folder in self.folders:
            for _ in range(_KILL_ATTEMPTS):
                if not _kill_members(folder):
                    break
                time.sleep(0.001)
            with suppress(OSError):
                folder.rmdir()


def _kill_members(folder: Path) -> bool:
    """Kill all processes in a group; returns whether there were any."""
    pids = _read(folder / "cgroup.procs").split()
    for pid in map(int, pids):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


@contextmanager
def make_control_group(limits: Limits | None = None) -> Generator[ControlGroup]:
    """A group with these limits, or unlimited for now. Without permission to create groups, an empty ControlGroup."""
    group = _create(group_values(limits) if limits else _UNLIMITED)
    try:
        yield group
    finally:
        group.remove()


def _create(values: Mapping[str, str]) -> ControlGroup:
    name = f"septet-{os.getpid()}-{next(_numbers)}"
    folders: list[Path] = []
    for parent in _writable_parents():
        folder = parent / name
        try:
            folder.mkdir()
        except OSError:
            continue
        if _write_values(folder, values):
            folders.append(folder)
        else:
            folder.rmdir()
    return ControlGroup(tuple(folders))


def _write_values(folder: Path, values: Mapping[str, str]) -> bool:
    for name, value in values.items():
        if (folder / name).exists():
            try:
                (folder / name).write_text(value)
            except OSError:
                return False
    return True


@cache
def _writable_parents() -> tuple[Path, ...]:
    folders = tuple(parents(_read(_MEMBERSHIPS), _read(_MOUNTS)))
    for parent in folders:
        remove_stale_groups(parent)
    return folders


def control_group_of(pid: int) -> ControlGroup:
    """The groups of a process that another program started, to see which limit it reaches."""
    mounts = dict(_mounts(_read(_MOUNTS)))
    lines = (line.split(":", 2) for line in _read(Path("/proc", str(pid), "cgroup")).splitlines())
    return ControlGroup(
        tuple(mounts[kind] / path.lstrip("/") for _, kind, path in lines if kind in mounts and path != "/")
    )


def remove_stale_groups(parent: Path) -> None:
    """Remove groups that a killed Septet process left behind."""
    for folder in parent.glob("septet-*-*"):
        with suppress(OSError):
            if not _began_before(folder.name.split("-")[1], folder.stat().st_mtime):
                folder.rmdir()


def _began_before(pid: str, moment: float) -> bool:
    """Whether that process lives and is older: pids are used again, and threads have such numbers too."""
    try:
        ticks = int(Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[19])
    except FileNotFoundError:
        return False
    return (
        time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK") < moment + 1
    )


def parents(memberships: str, mounted: str) -> Iterator[Path]:
    """The groups in which we can create ours: our own (version 1) or its parent (version 2)."""
    mounts = dict(_mounts(mounted))
    for line in memberships.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in _CONTROLLERS and controllers in mounts:
            yield mounts[controllers] / path.lstrip("/")
        elif not controllers and "" in mounts:
            parent = (mounts[""] / path.lstrip("/")).parent
            if path != "/" and set(_CONTROLLERS) <= set(_read(parent / "cgroup.subtree_control").split()):
                yield parent


def _mounts(mounted: str) -> Iterator[tuple[str, Path]]:
    """Controllers and where their hierarchies are mounted; "" stands for version 2."""
    for line in mounted.splitlines():
        fields, _, kind = line.partition(" - ")
        _, _, _, root, target, *_ = fields.split()
        name, _, options = kind.split(" ", 2)
        if root == "/" and name == "cgroup2":
            yield "", Path(target)
        elif root == "/" and name == "cgroup":
            for controller in set(_CONTROLLERS) & set(options.replace(" ", ",").split(",")):
                yield controller, Path(target)


def _read_count(path: Path, key: str) -> int:
    for line in _read(path).splitlines():
        if line.startswith(f"{key} "):
            return int(line.split()[1])
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
