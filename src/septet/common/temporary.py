"""Temporary folders that are removed with their owner; the next start removes those of a killed process.

Each is locked by its owner. The kernel releases the locks of a process that ends, so a folder that can be locked has no
owner. Unlike a check by pid, this works across containers that share the folder and is not fooled by reused pids.
"""

import atexit
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_FOLDER_NAME = re.compile(r"septet-(?:temporary|passing)-[a-z]+-[a-z0-9_]{8}")
_OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TemporaryFolder(NamedTuple):
    """A folder, and the open descriptor that holds its lock."""

    path: Path
    lock: int

    def remove(self) -> None:
        remove_folder(self.path)
        with suppress(OSError):
            os.close(self.lock)


def make_temporary_folder(kind: str) -> TemporaryFolder:
    """Create a folder. Another process may remove it as stale before we lock it; then create another one."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"septet-temporary-{kind}-"))
        with suppress(FileNotFoundError, BlockingIOError):
            return TemporaryFolder(path, _lock(path, fcntl.LOCK_SH))


@contextmanager
def temporary_folder(kind: str) -> Generator[Path]:
    """A folder until the context ends."""
    folder = make_temporary_folder(kind)
    try:
        yield folder.path
    finally:
        folder.remove()


def process_folder(kind: str) -> Path:
    """A folder until this process ends, readable by other users."""
    folder = make_temporary_folder(kind)
    atexit.register(folder.remove)
    folder.path.chmod(0o755)
    return folder.path


def remove_stale_folders() -> None:
    """Remove this user's folders that no process holds."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if _FOLDER_NAME.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_stale(Path(entry.path))


def _remove_if_stale(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    if not status.st_mode & stat.S_IRUSR:
        path.chmod(0o700)  # a program that ran there may have changed its mode
    lock = _lock(path, fcntl.LOCK_EX)
    try:
        remove_folder(path)
    finally:
        os.close(lock)


def _lock(path: Path, kind: int) -> int:
    """Open and lock a folder. Raises OSError if it is locked or no longer exists."""
    lock = os.open(path, _OPEN_FLAGS)
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), path.lstat()):
            raise FileNotFoundError(path)
    except BaseException:
        os.close(lock)
        raise
    return lock


def remove_folder(path: Path) -> None:
    """Remove a folder with its contents, also unreadable folders; links are never followed."""
    shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        return
    with suppress(OSError):
        path.chmod(0o700)
    for folder, names, _ in os.walk(path):
        for inner in (Path(folder, name) for name in names):
            with suppress(OSError):
                if not inner.is_symlink():
                    inner.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)
