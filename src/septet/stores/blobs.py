"""Blobs as files in a folder, named by the sha256 of their content; those that no chat refers to can be deleted."""

import fcntl
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from septet.common.threads import run_blocking
from septet.errors import LogDamaged, StoreFailed
from septet.stores.sqlite import BUSY_TIMEOUT, open_reader, store_errors

ADDRESS = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
MANIFEST = re.compile(rb'"manifest":"([0-9a-f]{64})"')
Addresses = Callable[[], set[str]]


class FolderBlobs:
    """Stores blobs as `ab/cdef…`: the first two digits of the address are the folder. The first `put` creates it.

    From then on until `close` no unused blobs can be deleted: an event that refers to a new blob may not be stored yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock_handle: int | None = None
        self._lock_guard = threading.Lock()

    def close(self) -> None:
        with self._lock_guard:
            if self._lock_handle is not None:
                os.close(self._lock_handle)
                self._lock_handle = None

    def _lock(self) -> None:
        with self._lock_guard:
            if self._lock_handle is None:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._lock_handle = os.open(self._folder, os.O_RDONLY)
                fcntl.flock(self._lock_handle, fcntl.LOCK_SH)

    async def put(self, content: bytes) -> str:
        return await run_blocking(lambda: self._put(bytes(content)))

    async def get(self, address: str) -> bytes:
        return await run_blocking(lambda: self._get(address))

    def _put(self, content: bytes) -> str:
        address = sha256(content).hexdigest()
        path = self._path(address)
        try:
            self._lock()
            if not is_intact(path, address):
                write_atomically(path, content)
        except OSError as error:
            raise StoreFailed(
                f"{path} cannot be written ({error.strerror})", "check the folder and the disk"
            ) from error
        return address

    def _get(self, address: str) -> bytes:
        path = self._path(address)
        try:
            content = path.read_bytes()
        except FileNotFoundError as error:
            raise LogDamaged(f"the blob {path} is missing", "restore it from a backup") from error
        except OSError as error:
            raise StoreFailed(
                f"{path} cannot be read ({error.strerror})", "check the folder and its permissions"
            ) from error
        if sha256(content).hexdigest() != address:
            raise LogDamaged(f"the blob {path} does not match its address", "restore it from a backup")
        return content

    def _path(self, address: str) -> Path:
        if len(address) != 64 or not set(address) <= set("0123456789abcdef"):
            raise LogDamaged(f"'{address[:80]}' is not the address of a blob", "restore the log")
        return self._folder / address[:2] / address[2:]


def is_intact(path: Path, address: str) -> bool:
    """Whether the blob exists with the right content; a damaged one is written again."""
    return path.exists() and sha256(path.read_bytes()).hexdigest() == address


def write_atomically(path: Path, content: bytes) -> None:
    """Write durably and atomically: a reader sees all of it or nothing, even after a power failure."""
    from tempfile import NamedTemporaryFile  # for those who write

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink()
            raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def addresses_in_log(database: Path, blobs: Path) -> set[str]:
    """Every address in the log, directly or in the manifest of a snapshot."""
    addresses: set[bytes] = set()
    manifests: set[bytes] = set()
    reader = open_reader(database, BUSY_TIMEOUT)
    if reader is None:
        return set()
    with store_errors(database), closing(reader):
        for data in events(reader):
            addresses.update(ADDRESS.findall(data))
            manifests.update(MANIFEST.findall(data))
    for address in manifests:
        path = blobs / address[:2].decode() / address[2:].decode()
        if path.exists():
            addresses.update(ADDRESS.findall(path.read_bytes()))
    return {address.decode() for address in addresses}


def events(reader: sqlite3.Connection) -> Iterator[bytes]:
    for (data,) in reader.execute("SELECT data FROM events"):
        yield data if isinstance(data, bytes) else str(data).encode()


def delete_unused_blobs(folder: Path, used: Addresses) -> int | None:
    """Delete unused blobs and return the number of bytes freed; None if another process may be adding blobs."""
    if not folder.is_dir():
        return 0
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return delete_files(folder, used())
    except BlockingIOError:
        return None
    except OSError as error:
        raise StoreFailed(
            f"{folder} cannot be cleaned up ({error.strerror})", "check its permissions"
        ) from error
    finally:
        os.close(handle)


def delete_files(folder: Path, used: set[str]) -> int:
    freed = 0
    for path in folder.glob("[0-9a-f][0-9a-f]/*"):
        if path.parent.name + path.name not in used:
            freed += path.stat().st_size
            path.unlink()
    return freed
