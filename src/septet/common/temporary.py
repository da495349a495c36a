"""Folders in the system's temporary folder that go with their owner; the next start sweeps those of a killed one.

Each is locked by who made it. A process that ends in whatever way loses its locks, so that a folder whose lock can be
had has no owner: that holds across containers that share the folder and never takes a reused process number for a
living owner.
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
from dataclasses import dataclass
from pathlib import Path

_OURS = re.compile(r"septet-(?:temporary|passing)-[a-z]+-[a-z0-9_]{8}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class TemporaryFolder:
    """A folder, and the open descriptor that holds its lock."""

    path: Path
    lock: int

    def remove(self) -> None:
        remove_folder(self.path)
        with suppress(OSError):
            os.close(self.lock)


def make_temporary_folder(kind: str) -> TemporaryFolder:
    """A new one. Whoever sweeps may have seen it before it was locked: then it is gone, and another is made."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"septet-temporary-{kind}-"))
        with suppress(FileNotFoundError, BlockingIOError):
            return TemporaryFolder(path, _lock(path, fcntl.LOCK_SH))


@contextmanager
def temporary_folder(kind: str) -> Generator[Path]:
    """One for as long as the context lasts."""
    made = make_temporary_folder(kind)
    try:
        yield made.path
    finally:
        made.remove()


def process_folder(kind: str) -> Path:
    """One for as long as this process lasts, which others may read."""
    made = make_temporary_folder(kind)
    atexit.register(made.remove)
    made.path.chmod(0o755)
    return made.path


def sweep_temporary_folders() -> None:
    """Take away the folders of this user that nobody holds."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name):
                with suppress(OSError):
                    _sweep(Path(entry.path))


def _sweep(path: Path) -> None:
    seen = path.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
        return
    if not seen.st_mode & stat.S_IRUSR:
        path.chmod(0o700)  # a program that ran there may have shut it
    lock = _lock(path, fcntl.LOCK_EX)
    try:
        remove_folder(path)
    finally:
        os.close(lock)


def _lock(path: Path, kind: int) -> int:
    """Its descriptor, locked, if the folder is still there then; an OSError otherwise."""
    lock = os.open(path, _FOLDER)
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), path.lstat()):
            raise FileNotFoundError(path)
    except BaseException:
        os.close(lock)
        raise
    return lock


def remove_folder(path: Path) -> None:
    """With all that is in it, also what a program has shut; links are never followed."""
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
