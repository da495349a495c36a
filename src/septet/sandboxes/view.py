"""The paths of the machine that a program in a sandbox sees, an allow-list, as bubblewrap's arguments."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from septet.domain.runs import Job
from septet.errors import BadUsage
from septet.sandboxes.environment import HOME, interpreter_folders
from septet.sandboxes.users import SandboxUser, etc_folder
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
    """A path that the program sees, mounted from the same path of the machine or from `source`."""

    path: Path
    writable: bool = False
    source: Path | None = None


def check_workspace(workspace: str) -> Path:
    """The real path of a workspace. Raises BadUsage for a system folder, which a program must not write to."""
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
    """The arguments for all mounts, shallow ones first, so that one inside another keeps its own permissions."""
    memory = job.limits.memory // 4
    read_only = (*repository_mounts(Path(job.mounted_at or workspace)), *shared_mounts(job))
    return [*_mount_arguments(workspace_mount(workspace, job), job.readable, read_only, user, memory)]


def workspace_mount(workspace: Path, job: Job) -> Mount:
    """The mount of the workspace, at the path where the program finds it."""
    target = Path(job.mounted_at) if job.mounted_at else workspace
    return Mount(target, writable=True, source=workspace)


def shared_mounts(job: Job) -> Iterator[Mount]:
    """Folders of the machine that the program sees, read-only, inside the copy that it works in."""
    for name in job.shared:
        path = Path(job.mounted_at) / name
        source = shared_source(job, name)
        if source.exists() and not source.is_symlink():
            yield Mount(path, source=source)


def shared_source(job: Job, name: str) -> Path:
    """Where the machine has it: in the person's folder, else where the setup command has made it."""
    path = Path(job.mounted_at) / name
    return path if path.exists() or not job.setup else Path(job.setup) / name


@lru_cache(maxsize=64)
def _mount_arguments(
    workspace: Mount, readable: tuple[str, ...], read_only: tuple[Mount, ...], user: SandboxUser, memory: int
) -> list[str]:
    mounts = _sort_mounts(workspace, readable, read_only)
    arguments = [*_system_arguments(), "--ro-bind", str(user.path_for(etc_folder())), "/etc"]
    arguments += [*_private_mounts(memory), *_parents(mounts)]
    for mount in mounts:
        source = str(user.path_for(mount.source or mount.path))
        arguments += ["--bind" if mount.writable else "--ro-bind", source, str(mount.path)]
    if os.geteuid() == 0 and not user.is_separate:
        arguments += _hide_kernel_files()
    return [*arguments, "--remount-ro", "/", "--chdir", str(workspace.path)]


def mounts_for(workspace: Path, readable: tuple[str, ...]) -> list[Mount]:
    """The mounts of a job besides the system folders, shallow ones first."""
    return _sort_mounts(Mount(workspace, writable=True), readable, tuple(repository_mounts(workspace)))


def _sort_mounts(workspace: Mount, readable: tuple[str, ...], read_only: tuple[Mount, ...]) -> list[Mount]:
    mounts = dict.fromkeys([workspace, *read_only, *map(Mount, readable_paths(readable))])
    return sorted(mounts, key=lambda mount: len(mount.path.parts))


@lru_cache(maxsize=64)
def readable_paths(readable: tuple[str, ...]) -> tuple[Path, ...]:
    """The paths that the program may read besides the workspace and the system folders."""
    paths = [*interpreter_folders(), *(Path(path).absolute() for path in readable)]
    return tuple(path for path in dict.fromkeys(paths) if not _inside_system(path))


def source_paths(workspace: Path, job: Job) -> list[Path]:
    """The paths of the machine to mount, the workspace first; without the system folders, which all users can read."""
    shared_paths = [mount.source or mount.path for mount in shared_mounts(job)]
    return list(dict.fromkeys([workspace, etc_folder(), *shared_paths, *readable_paths(job.readable)]))


def _parents(mounts: Iterable[Mount]) -> Iterator[str]:
    """The parent folders of mounts: otherwise empty, and readable by any user."""
    folders = {parent for mount in mounts for parent in mount.path.parents}
    created_anyway = {Path("/"), Path("/tmp"), Path("/dev"), Path("/proc")}  # noqa: S108  its own
    targets = {mount.path for mount in mounts}
    for folder in sorted(folders - created_anyway):
        if not targets & {folder, *folder.parents} and not _inside_system(folder):
            yield from ("--perms", "0755", "--dir", str(folder))


def repository_mounts(workspace: Path) -> Iterator[Mount]:
    """The repository, read-only: its hooks and settings would later run on the machine itself."""
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
    """The sandbox's own /tmp, /dev and /proc; those in memory are limited in size."""
    yield from ("--perms", "1777", "--size", str(size), "--tmpfs", "/tmp")  # noqa: S108  its own
    yield from ("--perms", "0777", "--dir", HOME, "--dev", "/dev")
    yield from ("--perms", "1777", "--size", str(size), "--tmpfs", "/dev/shm")  # noqa: S108  its own
    yield from ("--remount-ro", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")


def _hide_kernel_files() -> Iterator[str]:
    """Hide kernel files that root can read, whatever uid it has inside."""
    for name in _KERNEL_FILES:
        if Path("/proc", name).exists():
            yield from ("--ro-bind", "/dev/null", f"/proc/{name}")
