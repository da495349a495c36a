"""Copies of files that cost as little as the file system allows, with their modes and times."""

import errno
import fcntl
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

FICLONE = 0x40049409
"""Linux's request to share the blocks of a file until one of the two is written."""
NOT_HERE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM}


def copy_entry(source: Path, target: Path) -> None:
    """A link as a link, a file as a file of its own; what stands at the target goes. OSError where there is none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        target.unlink()
    status = source.lstat()
    if stat.S_ISLNK(status.st_mode):
        target.symlink_to(source.readlink())
        return
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "is no file", str(source))
    with source.open("rb") as before, target.open("wb") as after:
        copy_content(before.fileno(), after.fileno(), status.st_size)
        os.fchmod(after.fileno(), stat.S_IMODE(status.st_mode) & 0o777 | 0o600)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def copy_content(source: int, target: int, size: int) -> None:
    """Shared blocks, else a copy within the kernel, else through this process."""
    with suppress(OSError):
        fcntl.ioctl(target, FICLONE, source)
        return
    try:
        while size > 0 and (done := os.copy_file_range(source, target, size)):
            size -= done
    except OSError as error:
        if error.errno not in NOT_HERE:
            raise
        os.lseek(source, 0, os.SEEK_SET)
        os.lseek(target, 0, os.SEEK_SET)
        os.ftruncate(target, 0)
        with os.fdopen(os.dup(source), "rb") as before, os.fdopen(os.dup(target), "wb") as after:
            shutil.copyfileobj(before, after)
