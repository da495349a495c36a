"""Copies of files that cost as little as the file system allows, with their modes and times."""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

FICLONE = 0x40049409
"""Linux's request to share the blocks of a file until one of the two is written."""
NOT_HERE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM}
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
SMALL = 1 << 18
"""Bytes that are read and written faster than the kernel is asked to copy them."""


def copy_files(source: Path, target: Path, paths: Iterable[str]) -> None:
    """Into a folder that has none of them yet; what vanishes meanwhile, or is no file or link, is left out."""
    before, after = os.fspath(source), os.fspath(target)
    made: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        if folder not in made:
            os.makedirs(f"{after}/{folder}", exist_ok=True)  # noqa: PTH103  thousands of them
            made.add(folder)
        with suppress(FileNotFoundError, PermissionError):
            copy_new(f"{before}/{path}", f"{after}/{path}")


def copy_entry(source: Path, target: Path) -> None:
    """One file or link; what stands at the target goes. FileNotFoundError where there is none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        target.unlink()
    copy_new(os.fspath(source), os.fspath(target))


def copy_new(source: str, target: str) -> None:
    try:
        reading = os.open(source, READING)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK):
            raise
        os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211  thousands of them
        return
    try:
        status = os.fstat(reading)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "is no file", source)
        writing = os.open(target, WRITING, 0o600)
        try:
            copy_content(reading, writing, status.st_size)
            os.fchmod(writing, stat.S_IMODE(status.st_mode) & 0o777 | 0o600)
            os.utime(writing, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def copy_content(source: int, target: int, size: int) -> None:
    """A small file by itself; of a big one shared blocks, else a copy within the kernel, else through this process."""
    if size <= SMALL:
        while piece := os.read(source, SMALL):
            os.write(target, piece)
        return
    with suppress(OSError):
        fcntl.ioctl(target, FICLONE, source)
        return
    try:
        while size > 0 and (done := copy_file_range(source, target, size)):
            size -= done
    except OSError as error:
        if error.errno not in NOT_HERE:
            raise
        copy_through(source, target)


def copy_file_range(source: int, target: int, size: int) -> int:
    """Only Linux has it."""
    if not hasattr(os, "copy_file_range"):
        raise OSError(errno.ENOSYS, "no copy_file_range")
    return os.copy_file_range(source, target, size)


def copy_through(source: int, target: int) -> None:
    os.lseek(source, 0, os.SEEK_SET)
    os.lseek(target, 0, os.SEEK_SET)
    os.ftruncate(target, 0)
    with os.fdopen(os.dup(source), "rb") as before, os.fdopen(os.dup(target), "wb") as after:
        shutil.copyfileobj(before, after)
