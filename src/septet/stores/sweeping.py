"""Freeing blobs that no chat names any more, while nobody puts new ones."""

import fcntl
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from septet.errors import StoreFailed
from septet.stores.sqlite_file import PATIENCE, named_errors, open_reader

ADDRESS = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
MANIFEST = re.compile(rb'"manifest":"([0-9a-f]{64})"')
Used = Callable[[], set[str]]


def named_in(database: Path, blobs: Path) -> set[str]:
    """Every address that the log names, itself or by a snapshot's list of entries."""
    found: set[bytes] = set()
    lists: set[bytes] = set()
    reader = open_reader(database, PATIENCE)
    if reader is None:
        return set()
    with named_errors(database), closing(reader):
        for data in events(reader):
            found.update(ADDRESS.findall(data))
            lists.update(MANIFEST.findall(data))
    for address in lists:
        path = blobs / address[:2].decode() / address[2:].decode()
        if path.exists():
            found.update(ADDRESS.findall(path.read_bytes()))
    return {address.decode() for address in found}


def events(reader: sqlite3.Connection) -> Iterator[bytes]:
    for (data,) in reader.execute("SELECT data FROM events"):
        yield data if isinstance(data, bytes) else str(data).encode()


def sweep(folder: Path, used: Used) -> int | None:
    """Delete what is not used and say how many bytes that frees; None while others may be putting something."""
    if not folder.is_dir():
        return 0
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return delete_unused(folder, used())
    except BlockingIOError:
        return None
    except OSError as error:
        raise StoreFailed(f"{folder} cannot be swept ({error.strerror})", "check its permissions") from error
    finally:
        os.close(handle)


def delete_unused(folder: Path, used: set[str]) -> int:
    freed = 0
    for path in folder.glob("[0-9a-f][0-9a-f]/*"):
        if path.parent.name + path.name not in used:
            freed += path.stat().st_size
            path.unlink()
    return freed
