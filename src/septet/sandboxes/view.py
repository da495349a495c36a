"""What a program in a sandbox sees of the machine, as bubblewrap's arguments: an allow-list of paths."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from septet.domain.runs import Job
from septet.errors import BadUsage
from septet.sandboxes.environment import HOME, interpreter_folders
from septet.sandboxes.etc_files import etc_folder
from septet.sandboxes.users import SandboxUser
from septet.workspace.files import refuse_system_folder

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32")
_KERNEL_FILES = (
    "kcore",
    "keys",
    "key-users",
    "sysrq-trigger",
    "timer_list",
    "sched_debug",
    "kpagecount",
    "kpageflags",
)


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of the machine that the program sees at the same path, unless it is mounted from a `source`."""

    path: Path
    writable: bool = False
    source: Path | None = None


def check_workspace(workspace: str) -> Path:
    """The real path of a workspace, refused where giving it away would give the machine away."""
    path = existing_folder(workspace)
    refuse_system_folder(path)
    return path


def existing_folder(workspace: str) -> Path:
    try:
        path = Path(workspace).resolve()
        is_folder = path.is_dir()
    except OSError as error:
        raise BadUsage(
            f"the workspace {workspace[:80]} cannot be used ({error.strerror})", "name a folder that exists"
        ) from error
    if not is_folder:
        raise BadUsage(f"the workspace {path} is not a folder", "name a folder that exists")
    return path


def bubblewrap_arguments(workspace: Path, job: Job, user: SandboxUser) -> list[str]:
    """The mounts, the shallower first, so that a place inside another one keeps its own rule."""
    memory = job.limits.memory // 4
    kept = (*repository_mounts(Path(job.mounted_at or workspace)), *shared(job))
    return [*_mount_arguments(mounted(workspace, job), job.readable, kept, user, memory)]


def mounted(workspace: Path, job: Job) -> Mount:
    """The workspace, at the path where the program finds it."""
    at = Path(job.mounted_at) if job.mounted_at else workspace
    return Mount(at, writable=True, source=workspace)


def shared(job: Job) -> Iterator[Mount]:
    """What the program sees beside the copy that it works in; what a repository has of it is as the machine has it."""
    for name in job.shared:
        path = Path(job.mounted_at) / name
        if path.exists() and not path.is_symlink():
            yield Mount(path)


@lru_cache(maxsize=64)
def _mount_arguments(
    workspace: Mount, readable: tuple[str, ...], kept: tuple[Mount, ...], user: SandboxUser, memory: int
) -> list[str]:
    mounts = _sort_mounts(workspace, readable, kept)
    arguments = [*_system_arguments(), "--ro-bind", str(user.path_for(etc_folder())), "/etc"]
    arguments += [*_private_mounts(memory), *_parents(mounts)]
    for mount in mounts:
        source = str(user.path_for(mount.source or mount.path))
        arguments += ["--bind" if mount.writable else "--ro-bind", source, str(mount.path)]
    if os.geteuid() == 0 and not user.is_separate:
        arguments += _hide_kernel_files()
    return [*arguments, "--remount-ro", "/", "--chdir", str(workspace.path)]


def mounts_for(workspace: Path, readable: tuple[str, ...]) -> list[Mount]:
    """What the program sees beside the system, the shallower first."""
    return _sort_mounts(Mount(workspace, writable=True), readable, tuple(repository_mounts(workspace)))


def _sort_mounts(workspace: Mount, readable: tuple[str, ...], kept: tuple[Mount, ...]) -> list[Mount]:
    found = dict.fromkeys([workspace, *kept, *map(Mount, readable_paths(readable))])
    return sorted(found, key=lambda mount: len(mount.path.parts))


@lru_cache(maxsize=64)
def readable_paths(readable: tuple[str, ...]) -> tuple[Path, ...]:
    """What the program may read beside the workspace and the system's folders."""
    paths = [*interpreter_folders(), *(Path(path).absolute() for path in readable)]
    return tuple(path for path in dict.fromkeys(paths) if not _inside_system(path))


def source_paths(workspace: Path, job: Job) -> list[Path]:
    """Every path of the machine that a view is made of, the workspace first; the system's are open to all."""
    beside = [mount.path for mount in shared(job)]
    return list(dict.fromkeys([workspace, etc_folder(), *beside, *readable_paths(job.readable)]))


def _parents(mounts: Iterable[Mount]) -> Iterator[str]:
    """The folders on the way: empty but for what is shown, and open to the program, whoever it is."""
    folders = {parent for mount in mounts for parent in mount.path.parents}
    made_anyway = {Path("/"), Path("/tmp"), Path("/dev"), Path("/proc")}  # noqa: S108  its own
    inside = {mount.path for mount in mounts}
    for folder in sorted(folders - made_anyway):
        if not inside & {folder, *folder.parents} and not _inside_system(folder):
            yield from ("--perms", "0755", "--dir", str(folder))


def repository_mounts(workspace: Path) -> Iterator[Mount]:
    """A repository's hooks and settings run on the machine itself, later: not the program's to write."""
    repository = workspace / ".git"
    if repository.exists() and not repository.is_symlink():
        yield Mount(repository)


def _inside_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in SYSTEM_FOLDERS)


@cache
def _system_arguments() -> tuple[str, ...]:
    return tuple(_system_folders())


def _system_folders() -> Iterator[str]:
    for folder in map(Path, SYSTEM_FOLDERS):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))


def _private_mounts(size: int) -> Iterator[str]:
    """Places of the sandbox's own; those in memory are sized, because they are memory."""
    yield from ("--perms", "1777", "--size", str(size), "--tmpfs", "/tmp")  # noqa: S108  its own
    yield from ("--perms", "0777", "--dir", HOME, "--dev", "/dev")
    yield from ("--perms", "1777", "--size", str(size), "--tmpfs", "/dev/shm")  # noqa: S108  its own
    yield from ("--remount-ro", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")


def _hide_kernel_files() -> Iterator[str]:
    """What the kernel opens to its own root, whatever name that has inside."""
    for window in _KERNEL_FILES:
        if Path("/proc", window).exists():
            yield from ("--ro-bind", "/dev/null", f"/proc/{window}")
