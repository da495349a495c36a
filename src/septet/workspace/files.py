"""Reads and writes files of a workspace: validates paths, follows no links, and replaces files atomically."""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

from anyio import to_thread

from septet.domain.files import Layout
from septet.domain.plans import Refusal
from septet.errors import BadUsage, SeptetError, StoreFailed
from septet.ports import Blobs

DEVICE_NAMES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)),
}
FORBIDDEN_CHARACTERS = set('<>:"|?*\\')
RESERVED_NAMES = {".git"}
MAX_PATH_BYTES = 240


def path_problem(path: str, existing: Iterable[str] = ()) -> Refusal | None:
    """Why a path is refused; None if it is valid."""
    parts = path.split("/")
    if path.startswith(("/", "~")) or any(part in ("", ".", "..") for part in parts):
        return Refusal(reason=f"'{path[:MAX_PATH_BYTES]}' is not a path inside the workspace")
    if len(path.encode(errors="replace")) > MAX_PATH_BYTES:
        return Refusal(reason=f"'{path[:MAX_PATH_BYTES]}…' is too long")
    reasons = [*(part_problem(part) for part in parts), case_conflict(path, existing)]
    reason = next((reason for reason in reasons if reason), "")
    return Refusal(reason=f"'{path}' {reason}") if reason else None


def path_and_parents(path: str) -> set[str]:
    """The path and all its parent folders."""
    parts = path.split("/")
    return {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}


def part_problem(part: str) -> str:
    if any(sign in FORBIDDEN_CHARACTERS or ord(sign) < 32 or 0xD800 <= ord(sign) < 0xE000 for sign in part):
        return "holds a character that file names may not have everywhere"
    if part.partition(".")[0].strip().lower() in DEVICE_NAMES:
        return "names a device"
    if part.endswith((".", " ")) or part.startswith(" "):
        return "begins or ends with a space or a dot that some systems drop"
    return "belongs to the repository, not to the program" if part.lower() in RESERVED_NAMES else ""


def case_conflict(path: str, existing: Iterable[str]) -> str:
    """Say if the path differs only in case from another one: on many machines they are one file."""
    near = next((one for one in existing if one != path and one.casefold() == path.casefold()), None)
    return f"differs only in case from '{near}'" if near else ""


T = TypeVar("T")
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MAX_FILE_BYTES = 64 << 20
DRAFT_SUFFIX = ".septet"
DRAFT_NAME = re.compile(rf"\.[0-9a-f]{{24}}{re.escape(DRAFT_SUFFIX)}")
KINDS = {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link"}
SYSTEM_FOLDERS = frozenset(
    f"/{name}"
    for name in ("", "bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run")
) | frozenset(f"/{name}" for name in ("sbin", "srv", "sys", "tmp", "usr", "usr/bin", "usr/lib", "var"))


class Workspace:
    """A folder that the team may write to. It is created when first needed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def check(self) -> None:
        """Raise BadUsage if the folder could not be used; creates nothing."""
        await in_thread(lambda: check_workspace_folder(self.root))

    async def write_layout(self, layout: Layout, blobs: Blobs) -> None:
        """Write the layout's files and remove what may be removed. The person's files are not changed."""
        contents = {file.path: await blobs.get(file.sha256) for file in layout.files}
        await in_thread(lambda: self.apply_layout(layout, contents))

    def apply_layout(self, layout: Layout, contents: Mapping[str, bytes]) -> None:
        make_folder(self.root)
        wanted = {file.path: file.sha256 for file in layout.files}
        for path in sorted(layout.removable, key=depth, reverse=True):
            digests = layout.removable[path]
            self.remove_known(path, [one for one in digests if not one] if path in wanted else digests)
        for path, digest in wanted.items():
            with self.folder_of(
                path, make=True
            ):  # a program may have removed its permissions, or replaced it
                found = self.digest(path)
            if found != digest and layout.may_replace(path, found):
                self.write(path, contents[path])

    async def content(self, path: str) -> bytes | None:
        """The current content; None if the path is not a plain file."""
        return await in_thread(lambda: self.read(path))

    def read(self, path: str, most: int = MAX_FILE_BYTES) -> bytes | None:
        with suppress(OSError), self.folder_of(path) as (folder, name):
            handle = os.open(name, FILE_FLAGS, dir_fd=folder)
            with os.fdopen(handle, "rb") as file:
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    return file.read(most)
        return None

    def digest(self, path: str) -> str:
        content = self.read(path)
        return "" if content is None else sha256(content).hexdigest()

    def remove_known(self, path: str, digests: Collection[str]) -> None:
        """Remove a file with one of these digests; "" matches a folder, link or pipe, which have no digest."""
        with suppress(OSError), self.folder_of(path) as (folder, name):
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                if self.digest(path) in digests:
                    os.unlink(name, dir_fd=folder)
            elif "" in digests and stat.S_ISDIR(mode):
                remove_empty(folder, name)
            elif "" in digests:
                os.unlink(name, dir_fd=folder)

    def write(self, path: str, content: bytes) -> None:
        """Write a file atomically; it keeps its mode and owner. Folders and links at the path are moved aside."""
        with self.folder_of(path, make=True) as (folder, name):
            before = file_stat(folder, name)
            sweep_drafts(folder)
            draft = f".{token_hex(12)}{DRAFT_SUFFIX}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(draft, flags, 0o644, dir_fd=folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    copy_mode_and_owner(handle, before)
                if before is None:
                    put_aside(folder, name)
                os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with suppress(OSError):
                    os.unlink(draft, dir_fd=folder)
                raise

    def create(self, path: str, content: bytes) -> None:
        """Write a file that must not exist yet."""
        make_folder(self.root)
        self.write(path, content)

    def append(self, path: str, content: bytes) -> None:
        """Append to a plain file and flush it to disk."""
        make_folder(self.root)
        with self.folder_of(path, make=True) as (folder, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())

    def obstacle(self, path: str) -> str:
        """Why no file can safely be written at the path; empty if one can."""
        *parents, name = relative_parts(path)
        if not self.root.exists():
            return ""
        make_root_accessible(self.root)
        folder = os.open(self.root, FOLDER_FLAGS & ~os.O_NOFOLLOW)
        try:
            for part in parents:
                mode = os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode
                if not stat.S_ISDIR(mode):
                    return f"leads through '{part}', which is {'a link' if stat.S_ISLNK(mode) else 'a file'}"
                deeper = os.open(part, FOLDER_FLAGS, dir_fd=folder)
                os.close(folder)
                folder = deeper
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            return "" if stat.S_ISREG(mode) else f"is {KINDS.get(stat.S_IFMT(mode), 'no file')} already"
        except FileNotFoundError:
            writable = os.access(".", os.W_OK | os.X_OK, dir_fd=folder)
            return "" if writable else "lies in a folder that is not writable"
        except PermissionError:
            return "lies in a folder that is not readable"
        finally:
            os.close(folder)

    @contextmanager
    def folder_of(self, path: str, make: bool = False):
        """Open the parent folder of `path` without following links; yields it with the last part of the path."""
        *parents, name = relative_parts(path)
        folder = os.open(self.root, FOLDER_FLAGS & ~os.O_NOFOLLOW)
        try:
            for part in parents:
                if make:
                    ensure_folder(folder, part)
                deeper = os.open(part, FOLDER_FLAGS, dir_fd=folder)
                os.close(folder)
                folder = deeper
            yield folder, name
        finally:
            os.close(folder)


def depth(path: str) -> int:
    return path.count("/")


def file_stat(folder: int, name: str) -> os.stat_result | None:
    with suppress(OSError):
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
        return state if stat.S_ISREG(state.st_mode) else None
    return None


def copy_mode_and_owner(handle: int, before: os.stat_result | None) -> None:
    """Copy the mode and, if the system allows it, the owner of the file that is replaced."""
    if before is None:
        return
    with suppress(OSError):
        os.fchown(handle, before.st_uid, before.st_gid)
    os.fchmod(handle, stat.S_IMODE(before.st_mode) & 0o777)


def sweep_drafts(folder: int) -> None:
    """Remove drafts that a killed process left. Their names are random, and only plain files are ours."""
    for name in os.listdir(folder):
        if DRAFT_NAME.fullmatch(name) and file_stat(folder, name):
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)


def ensure_folder(folder: int, name: str) -> None:
    """Make sure that the name is a folder that its owner can use; anything else is moved aside."""
    with suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            make_accessible(name, mode, folder)
            return
        put_aside(folder, name)
    os.mkdir(name, 0o755, dir_fd=folder)


def make_accessible(path: str | Path, mode: int, folder: int | None = None) -> None:
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        with suppress(OSError):
            os.chmod(path, stat.S_IMODE(mode) | stat.S_IRWXU, dir_fd=folder)  # Path has no dir_fd


def make_root_accessible(root: Path) -> None:
    """Restore the owner's permissions of the folder, which a program may have removed."""
    with suppress(OSError):
        make_accessible(root, root.stat().st_mode)


def put_aside(folder: int, name: str) -> None:
    """Free the name: remove an empty folder, rename anything else."""
    with suppress(FileNotFoundError):
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError:
            aside = f"{name[:200]}.aside-{token_hex(4)}"
            os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)


def remove_empty(folder: int, name: str) -> None:
    """Remove a tree of empty folders. It may be deeper than the longest possible path."""
    here = enter_folder(os.dup(folder), name)
    try:
        way, inner = [name], [folders_in(here)]
        while way:
            if inner[-1]:
                with suppress(OSError):
                    here = enter_folder(here, down := inner[-1].pop())
                    way.append(down)
                    inner.append(folders_in(here))
            else:
                here = enter_folder(here, "..")
                inner.pop()
                with suppress(OSError):
                    os.rmdir(way.pop(), dir_fd=here)
    finally:
        os.close(here)


def enter_folder(folder: int, name: str) -> int:
    if name != "..":
        make_accessible(name, os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode, folder)
    deeper = os.open(name, FOLDER_FLAGS, dir_fd=folder)
    os.close(folder)
    return deeper


def folders_in(folder: int) -> list[str]:
    with os.scandir(folder) as found:
        return [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]


def relative_parts(path: str) -> list[str]:
    """The parts of a relative path. Raises BadUsage if it leads outside the workspace."""
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise BadUsage(f"'{path}' is not a path inside the workspace", "use a relative path without '..'")
    return parts


def make_folder(root: Path) -> None:
    make_root_accessible(root)
    check_workspace_folder(root)
    root.mkdir(parents=True, exist_ok=True)


def refuse_system_folder(folder: Path) -> None:
    """Raise BadUsage for the root, a system folder or the person's home, which must not be a workspace."""
    if str(folder) in SYSTEM_FOLDERS or folder == Path.home():
        raise BadUsage(f"{folder} is too wide for a workspace", "name a folder of its own for this work")


def check_workspace_folder(root: Path) -> None:
    try:
        nearest = next(folder for folder in (root, *root.parents) if folder.exists())
        refuse_system_folder(root.resolve())
    except OSError as error:
        raise BadUsage(
            f"the workspace {str(root)[:80]} cannot be used ({error.strerror})", "name another folder with -C"
        ) from error
    if not nearest.is_dir():
        inside = f", so that {root} cannot be a folder" if nearest != root else ""
        raise BadUsage(f"{nearest} is a file{inside}", "name a folder with -C")
    probe = os.statvfs(nearest)
    if not os.access(nearest, os.W_OK | os.X_OK) or probe.f_flag & os.ST_RDONLY:
        raise BadUsage(
            f"the workspace {root} is not writable",
            "name another folder with -C, or another home with SEPTET_HOME",
        )


async def in_thread(work: Callable[[], T]) -> T:
    """Run disk work in a thread; an OSError becomes StoreFailed."""
    try:
        return await to_thread.run_sync(work)
    except SeptetError:
        raise
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise StoreFailed(
            f"the workspace cannot be used: {error.strerror}{where}", "make room or name another"
        ) from error
