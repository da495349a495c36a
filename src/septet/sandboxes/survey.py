"""Reads a workspace from outside as if it were hostile: follows no link, opens nothing but plain files."""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

from septet.domain.files import FileChange

_MAX_DEPTH = 128
_MAX_DIGEST_SIZE = 64 << 20
_PIECE = 1 << 20
_MAX_OTHERS = 1_000


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells that a file is not what it was; the change time cannot be set back by a program."""

    size: int
    mtime: int
    ctime: int
    inode: int


@dataclass(frozen=True, slots=True)
class Survey:
    """All plain files of a workspace, the space they take and how many entries of any kind there are."""

    files: Mapping[bytes, FileStamp]
    space: int
    entries: int
    others: frozenset[bytes] = frozenset()
    """Folders, links and whatever else is no plain file."""


class ReadBudget:
    """How much may be read to tell what changed: so many bytes, for so many seconds."""

    def __init__(self, room: int = 256 << 20, seconds: float = 5.0) -> None:
        self._room = room
        self._end = time.monotonic() + seconds

    def allows(self, size: int) -> bool:
        """Whether so many bytes more are fine; they count as read."""
        if size > self._room or time.monotonic() > self._end:
            return False
        self._room -= size
        return True


def survey(workspace: Path) -> Survey:
    """One walk, one look per entry. What vanishes meanwhile or may not be read is left out."""
    return _summarise(_walk(os.fsencode(workspace)))


def quick_survey(workspace: Path, at_most: int) -> Survey | None:
    """The same for a workspace with few entries; of one with more, not much more than those is looked at."""
    found = _summarise(islice(_walk(os.fsencode(workspace), at_most), at_most + 1))
    return found if found.entries <= at_most else None


def _summarise(found: Iterable[tuple[bytes, os.stat_result]]) -> Survey:
    files: dict[bytes, FileStamp] = {}
    others: set[bytes] = set()
    space = entries = 0
    for name, status in found:
        entries += 1
        space += status.st_blocks * 512
        if stat.S_ISREG(status.st_mode):
            files[name] = FileStamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        else:
            others.add(name)
    return Survey(files, space, entries, frozenset(others))


def _walk(top: bytes, at_most: int | None = None) -> Iterator[tuple[bytes, os.stat_result]]:
    folders = [(b"", 0)]
    while folders:
        folder, depth = folders.pop()
        for entry in _entries(os.path.join(top, folder), at_most):  # noqa: PTH118  names may be no text at all
            name = folder + entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield name, status
            if stat.S_ISDIR(status.st_mode) and depth < _MAX_DEPTH:
                folders.append((name + b"/", depth + 1))


def _entries(folder: bytes, at_most: int | None) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(folder) as found:
            return list(found if at_most is None else islice(found, at_most + 1))
    except OSError:
        return []


def changes(
    workspace: Path, before: Survey, after: Survey, effort: ReadBudget | None = None
) -> tuple[FileChange, ...]:
    """What happened between two surveys, in the order of the names; only touched files are read, small ones first."""
    effort = effort or ReadBudget()
    touched = [name for name, stamp in after.files.items() if before.files.get(name) != stamp]
    found = [
        FileChange(
            path=_display_name(name),
            kind="changed" if name in before.files else "new",
            size=after.files[name].size,
            sha256=_digest(workspace, name, after.files[name].size, effort),
        )
        for name in sorted(touched, key=lambda name: after.files[name].size)
    ]
    found += [
        FileChange(path=_display_name(name), kind="deleted")
        for name in before.files.keys() - after.files.keys()
    ]
    return tuple(sorted(found, key=lambda change: change.path))


def others(before: Survey, after: Survey) -> tuple[str, ...]:
    """Folders, links and pipes that were not there before; of very many those that are not deep."""
    found = sorted(after.others - before.others, key=lambda name: (name.count(b"/"), name))
    return tuple(_display_name(name) for name in found[:_MAX_OTHERS])


def _display_name(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _digest(workspace: Path, name: bytes, size: int, effort: ReadBudget) -> str:
    """Nothing for a file that cannot be read, is too big, has holes or would take too long."""
    if size > _MAX_DIGEST_SIZE or not effort.allows(size):
        return ""
    try:
        descriptor = open_beneath(workspace, name)
    except OSError:
        return ""
    digest = sha256()
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if size > _PIECE and _has_holes(descriptor, size):
            return ""
        while piece := file.read(_PIECE):
            digest.update(piece)
            if not effort.allows(0):
                return ""
    return digest.hexdigest()


def _has_holes(descriptor: int, size: int) -> bool:
    """Whether it takes less room than its size says: a few blocks can be any number of bytes."""
    try:
        return os.lseek(descriptor, 0, os.SEEK_HOLE) < size
    except OSError:
        return False
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def open_beneath(workspace: Path, name: bytes) -> int:
    """A descriptor of a plain file of the workspace, reached folder by folder without following a link."""
    *folders, last = name.split(b"/")
    at = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=at)
    finally:
        os.close(at)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise IsADirectoryError(f"{_display_name(name)} is not a plain file")
