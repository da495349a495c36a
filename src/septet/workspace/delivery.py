"""Files for the person: a destination is checked before the work, and written whole or not at all."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from septet.errors import BadUsage, StoreFailed


def check_destination(path: Path) -> None:
    """Say now why the file could not be written later; nothing is made yet."""
    try:
        if path.is_dir():
            raise BadUsage(f"{path} is a folder", "name a file in it")
        if not path.parent.is_dir():
            raise BadUsage(f"{path} cannot be written: there is no folder {path.parent}", "make it first")
        place = path if path.exists() and not path.is_file() else path.resolve().parent
        if not os.access(place, os.W_OK):
            raise BadUsage(f"{path} cannot be written: {place} is not writable", "name another file")
    except OSError as error:
        raise BadUsage(
            f"{str(path)[:80]} cannot be written: {error.strerror}", "name another file"
        ) from error


def deliver(path: Path, content: bytes) -> None:
    """Replace the file in one move; what is no plain file (a pipe, a device) is written to."""
    check_destination(path)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            replace_file(path.resolve(), content)
    except OSError as error:
        raise StoreFailed(
            f"{path} was not written: {error.strerror}", "make room or name another file"
        ) from error


def replace_file(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name[:200]}.{os.getpid()}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            if path.exists():
                os.fchmod(handle, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(handle)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise
