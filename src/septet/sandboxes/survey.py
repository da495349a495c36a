"""Surveys a workspace from outside as if it were hostile: follows no links, opens only regular files."""

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
_PIECE_BYTES = 1 << 20
_MAX_OTHERS = 1_000


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Detects a changed file; a program cannot set back the ctime."""

    size: int
    mtime: int
    ctime: int
    inode: int


@dataclass(frozen=True, slots=True)
class Survey:
    """All regular files of a workspace, the space they take and the number of entries of any kind."""

    files: Mapping[bytes, FileStamp]
    space: int
    entries: int
    others: frozenset[bytes] = frozenset()
    """Folders, links and everything else that is not a regular file."""


class ReadBudget:
    """How much may be read to find changes: a number of bytes, for a number of seconds."""

    def __init__(self, max_bytes: int = 256 << 20, seconds: float = 5.0) -> None:
        self._bytes_left = max_bytes
        self._end = time.monotonic() + seconds

    def allows(self, size: int) -> bool:
        """Whether `size` more bytes may be read; if so, they count as read."""
        if size > self._bytes_left or time.monotonic() > self._end:
            return False
        self._bytes_left -= size
        return True


def survey(workspace: Path) -> Survey:
    """Walk the workspace once. Entries that vanish meanwhile or cannot be read are left out."""
    return _summarise(_walk(os.fsencode(workspace)))


def quick_survey(workspace: Path, at_most: int) -> Survey | None:
    """The same for a workspace with at most `at_most` entries; None if it has more, without reading them all."""
    result = _summarise(islice(_walk(os.fsencode(workspace), at_most), at_most + 1))
    return result if result.entries <= at_most else None


def _summarise(walked: Iterable[tuple[bytes, os.stat_result]]) -> Survey:
    files: dict[bytes, FileStamp] = {}
    others: set[bytes] = set()
    space = entries = 0
    for name, status in walked:
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
        for entry in _entries(os.path.join(top, folder), at_most):  # noqa: PTH118  names may not be valid text
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
        with os.scandir(folder) as scan:
            return list(scan if at_most is None else islice(scan, at_most + 1))
    except OSError:
        return []


def changes(
    workspace: Path, before: Survey, after: Survey, budget: ReadBudget | None = None
) -> tuple[FileChange, ...]:
    """The changes between two surveys, sorted by path; only changed files are read, small ones first."""
    budget = budget or ReadBudget()
    touched = [name for name, stamp in after.files.items() if before.files.get(name) != stamp]
    result = [
        FileChange(
            path=_display_name(name),
            kind="changed" if name in before.files else "new",
            size=after.files[name].size,
            sha256=_digest(workspace, name, after.files[name].size, budget),
        )
        for name in sorted(touched, key=lambda name: after.files[name].size)
    ]
    result += [
        FileChange(path=_display_name(name), kind="deleted")
        for name in before.files.keys() - after.files.keys()
    ]
    return tuple(sorted(result, key=lambda change: change.path))


def others(before: Survey, after: Survey) -> tuple[str, ...]:
    """New folders, links and pipes; if there are too many, the least deep ones."""
    names = sorted(after.others - before.others, key=lambda name: (name.count(b"/"), name))
    return tuple(_display_name(name) for name in names[:_MAX_OTHERS])


def _display_name(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _digest(workspace: Path, name: bytes, size: int, budget: ReadBudget) -> str:
    """The sha256 of a file; empty if it cannot be read, is too big or sparse, or would take too long."""
    if size > _MAX_DIGEST_SIZE or not budget.allows(size):
        return ""
    try:
        descriptor = open_beneath(workspace, name)
    except OSError:
        return ""
    digest = sha256()
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if size > _PIECE_BYTES and _has_holes(descriptor, size):
            return ""
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
            if not budget.allows(0):
                return ""
    return digest.hexdigest()


def _has_holes(descriptor: int, size: int) -> bool:
    """Whether a file is sparse: a few blocks can appear as any number of bytes."""
    try:
        return os.lseek(descriptor, 0, os.SEEK_HOLE) < size
    except OSError:
        return False
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def open_beneath(workspace: Path, name: bytes) -> int:
    """Open a regular file of the workspace, folder by folder, without following a link."""
    *folders, last = name.split(b"/")
    parent = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
            os.close(parent)
            parent = inner
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=parent)
    finally:
        os.close(parent)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise IsADirectoryError(f"{_display_name(name)} is not a regular file")
