"""The workspace: the image of the newest version on disk. It is hostile ground, for programs ran in it.

Every path is opened step by step beneath the root without following links, so that a link that a program
left there leads nowhere, and every file is replaced in one move.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from anyio import to_thread

from septet.domain.files import FileRef
from septet.errors import BadUsage, SeptetError, StoreFailed
from septet.ports import Blobs

T = TypeVar("T")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LARGEST = 64 << 20
TOO_WIDE = frozenset(
    f"/{name}"
    for name in ("", "bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run")
) | frozenset(f"/{name}" for name in ("sbin", "srv", "sys", "tmp", "usr", "usr/bin", "usr/lib", "var"))


class Workspace:
    """A folder that the team may fill. Made when it is first needed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def check(self) -> None:
        """Say now why the folder could not be used later; nothing is made yet."""
        await in_thread(lambda: check_folder(self.root))

    async def show(self, files: Iterable[FileRef], blobs: Blobs, gone: Mapping[str, str]) -> None:
        """Put these files there; take away what `gone` names, where it is still as we left it."""
        wanted = {file.path: file for file in files}
        contents = {path: await blobs.get(file.sha256) for path, file in wanted.items()}
        leaving = {path: digest for path, digest in gone.items() if path not in wanted}

        def show() -> None:
            make_folder(self.root)
            for path, digest in leaving.items():
                if self.digest(path) == digest:
                    self.remove(path)
            for path, content in contents.items():
                if self.digest(path) != wanted[path].sha256:
                    self.write(path, content)

        await in_thread(show)

    async def content(self, path: str) -> bytes | None:
        """What stands there now; None where no plain file does."""
        return await in_thread(lambda: self.read(path))

    def read(self, path: str) -> bytes | None:
        with suppress(OSError), self.folder_of(path) as (folder, name):
            handle = os.open(name, PLAIN, dir_fd=folder)
            with os.fdopen(handle, "rb") as file:
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    return file.read(LARGEST)
        return None

    def digest(self, path: str) -> str:
        content = self.read(path)
        return "" if content is None else sha256(content).hexdigest()

    def remove(self, path: str) -> None:
        with suppress(OSError), self.folder_of(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    def write(self, path: str, content: bytes) -> None:
        with self.folder_of(path, make=True) as (folder, name):
            draft = f".{sha256(name.encode()).hexdigest()[:16]}.new"
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)  # a kill left it
            handle = os.open(
                draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=folder
            )
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with suppress(OSError):
                    os.unlink(draft, dir_fd=folder)
                raise

    def make(self, path: str, content: bytes) -> None:
        """Write a file that nobody has written yet."""
        make_folder(self.root)
        self.write(path, content)

    def append(self, path: str, content: bytes) -> None:
        """Add to the end of a plain file and have it on disk."""
        make_folder(self.root)
        with self.folder_of(path, make=True) as (folder, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())

    @contextmanager
    def folder_of(self, path: str, make: bool = False):
        """The open folder that holds `path`, reached without a link, and the last part of the name."""
        *parents, name = inside(path)
        folder = os.open(self.root, FOLDER & ~os.O_NOFOLLOW)
        try:
            for part in parents:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=folder)
                deeper = os.open(part, FOLDER, dir_fd=folder)
                os.close(folder)
                folder = deeper
            yield folder, name
        finally:
            os.close(folder)


def inside(path: str) -> list[str]:
    """The parts of a relative path that stays inside, or an error."""
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise BadUsage(f"'{path}' is not a path inside the workspace", "use a relative path without '..'")
    return parts


def make_folder(root: Path) -> None:
    check_folder(root)
    root.mkdir(parents=True, exist_ok=True)


def check_breadth(folder: Path) -> None:
    """A real path, refused where giving it away would give the machine or the person's home away."""
    if str(folder) in TOO_WIDE or folder == Path.home():
        raise BadUsage(f"{folder} is too wide for a workspace", "name a folder of its own for this work")


def check_folder(root: Path) -> None:
    try:
        nearest = next(folder for folder in (root, *root.parents) if folder.exists())
        check_breadth(root.resolve())
    except OSError as error:
        raise BadUsage(
            f"the workspace {str(root)[:80]} cannot be used ({error.strerror})", "name another folder with -C"
        ) from error
    if not nearest.is_dir():
        raise BadUsage(f"the workspace {root} is no folder, {nearest} is a file", "name a folder with -C")
    probe = os.statvfs(nearest)
    if not os.access(nearest, os.W_OK | os.X_OK) or probe.f_flag & os.ST_RDONLY:
        raise BadUsage(
            f"the workspace {root} is not writable",
            "name another folder with -C, or another home with SEPTET_HOME",
        )


async def in_thread(work: Callable[[], T]) -> T:
    """Disk work off the event loop; the disk's troubles in our words."""
    try:
        return await to_thread.run_sync(work)
    except SeptetError:
        raise
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise StoreFailed(
            f"the workspace cannot be used: {error.strerror}{where}", "make room or name another"
        ) from error
