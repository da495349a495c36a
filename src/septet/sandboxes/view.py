"""What a program in a sandbox sees of the machine, as bubblewrap's arguments: an allow-list of paths."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from septet.domain.runs import Limits
from septet.errors import BadUsage
from septet.sandboxes.environment import HOME, interpreter_folders
from septet.sandboxes.settings import settings_folder

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32")
_KERNEL_WINDOWS = (
    "kcore",
    "keys",
    "key-users",
    "sysrq-trigger",
    "timer_list",
    "sched_debug",
    "kpagecount",
    "kpageflags",
)
_TOO_WIDE = frozenset(
    f"/{name}"
    for name in ("", "bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run")
) | frozenset(f"/{name}" for name in ("sbin", "srv", "sys", "tmp", "usr", "usr/bin", "usr/lib", "var"))


@dataclass(frozen=True, slots=True)
class Place:
    """A path of the machine that the program sees at the same path."""

    path: Path
    writable: bool = False


def checked_workspace(workspace: str) -> Path:
    """The real path of a workspace, refused where giving it away would give the machine away."""
    path = existing_folder(workspace)
    if str(path) in _TOO_WIDE or path == Path.home():
        raise BadUsage(f"{path} is too wide for a workspace", "name a folder of its own for this work")
    return path


def existing_folder(workspace: str) -> Path:
    path = Path(workspace).resolve()
    if not path.is_dir():
        raise BadUsage(f"the workspace {path} is not a folder", "name a folder that exists")
    return path


def arguments(workspace: Path, readable: Iterable[str], limits: Limits) -> list[str]:
    """The mounts, the shallower first, so that a place inside another one keeps its own rule."""
    places = [Place(workspace, writable=True), *_protected(workspace)]
    places += [Place(folder) for folder in interpreter_folders() if not _inside_system(folder)]
    places += [Place(Path(path).absolute()) for path in readable if not _inside_system(Path(path))]
    made = [*_system(), *_private(limits)]
    for place in sorted(places, key=lambda place: len(place.path.parts)):
        made += ["--bind" if place.writable else "--ro-bind", str(place.path), str(place.path)]
    return [*made, "--remount-ro", "/", "--chdir", str(workspace)]


def _protected(workspace: Path) -> Iterator[Place]:
    """A repository's hooks and settings run on the machine itself, later: not the program's to write."""
    repository = workspace / ".git"
    if repository.exists() and not repository.is_symlink():
        yield Place(repository)


def _inside_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _SYSTEM)


def _system() -> Iterator[str]:
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    yield from ("--ro-bind", str(settings_folder()), "/etc")


def _private(limits: Limits) -> Iterator[str]:
    """Places of the sandbox's own; those in memory are sized, because they are memory."""
    yield from ("--perms", "1777", "--size", str(limits.memory // 4), "--tmpfs", "/tmp")  # noqa: S108  its own
    yield from ("--dir", HOME, "--dev", "/dev")
    yield from ("--perms", "1777", "--size", str(limits.memory // 4), "--tmpfs", "/dev/shm")  # noqa: S108  its own
    yield from ("--remount-ro", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
    for window in _KERNEL_WINDOWS:
        if Path("/proc", window).exists():
            yield from ("--ro-bind", "/dev/null", f"/proc/{window}")
