"""Reads a workspace from outside as if it were hostile: follows no link, opens nothing but plain files."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

from septet.domain.files import FileChange

_DEEPEST = 128
_BIGGEST = 256 << 20
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells that a file is not what it was; the change time cannot be set back by a program."""

    size: int
    modified: int
    touched: int
    inode: int


@dataclass(frozen=True, slots=True)
class Survey:
    """All plain files of a workspace, the space they take and how many entries of any kind there are."""

    files: Mapping[bytes, Stamp]
    space: int
    entries: int


def survey(workspace: Path) -> Survey:
    """One walk, one look per entry. What vanishes meanwhile or may not be read is left out."""
    return _counted(_walk(os.fsencode(workspace)))


def quick_survey(workspace: Path, at_most: int) -> Survey | None:
    """The same for a workspace with few entries; of one with more, not much more than those is looked at."""
    found = _counted(islice(_walk(os.fsencode(workspace), at_most), at_most + 1))
    return found if found.entries <= at_most else None


def _counted(found: Iterable[tuple[bytes, os.stat_result]]) -> Survey:
    files: dict[bytes, Stamp] = {}
    space = entries = 0
    for name, status in found:
        entries += 1
        space += status.st_blocks * 512
        if stat.S_ISREG(status.st_mode):
            files[name] = Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return Survey(files, space, entries)


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
            if stat.S_ISDIR(status.st_mode) and depth < _DEEPEST:
                folders.append((name + b"/", depth + 1))


def _entries(folder: bytes, at_most: int | None) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(folder) as found:
            return list(found if at_most is None else islice(found, at_most + 1))
    except OSError:
        return []


def changes(workspace: Path, before: Survey, after: Survey) -> tuple[FileChange, ...]:
    """What happened between two surveys, in the order of the names; only touched files are read."""
    found = [
        _change(workspace, name, "changed" if name in before.files else "new", stamp)
        for name, stamp in after.files.items()
        if before.files.get(name) != stamp
    ]
    found += [
        FileChange(path=_shown(name), kind="deleted") for name in before.files.keys() - after.files.keys()
    ]
    return tuple(sorted(found, key=lambda change: change.path))


def _change(workspace: Path, name: bytes, kind: str, stamp: Stamp) -> FileChange:
    digest = _digest(workspace, name) if stamp.size <= _BIGGEST else ""
    return FileChange(
        path=_shown(name), kind="new" if kind == "new" else "changed", size=stamp.size, sha256=digest
    )


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _digest(workspace: Path, name: bytes) -> str:
    try:
        descriptor = open_beneath(workspace, name)
    except OSError:
        return ""
    digest = sha256()
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


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
    raise IsADirectoryError(f"{_shown(name)} is not a plain file")
