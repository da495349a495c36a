"""Backups of a log with its blobs, made while chats work; and the space that deleted chats leave in the log."""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from septet.common.values import Value
from septet.errors import BadUsage, LogDamaged
from septet.stores.blobs import addresses_in_log, is_intact
from septet.stores.sqlite import BUSY_TIMEOUT, open_reader, open_writer, read_number, store_errors

LOG = "septet.db"
BLOBS = "blobs"
STEP_PAGES = 256
"""Pages that a vacuum frees at a time; between two steps chats write."""
SMALL_LOG = 1 << 26
"""Bytes of a log that is rewritten in a moment."""


class Backup(Value, omit_defaults=False):
    """What a backup holds."""

    file: str
    bytes: int
    chats: int
    events: int
    blobs: int


def write_backup(database: Path, blobs: Path, others: Mapping[str, Path], file: Path) -> Backup:
    """Write the log as it is at this moment, the blobs that it names, and other files and folders, into a zip file.

    Nobody has to wait: SQLite copies a snapshot, and blobs never change. An event is stored after its blobs.
    """
    if not database.exists():
        raise BadUsage("there is no chat to back up", f"{database} does not exist")
    partial = file.with_name(file.name + ".partial")
    with store_errors(file), TemporaryDirectory(dir=file.parent, prefix=".septet-backup-") as folder:
        copy = Path(folder) / LOG
        with keep_blobs(blobs), ZipFile(partial, "w", ZIP_DEFLATED, compresslevel=1) as archive:
            partial.chmod(0o600)
            copy_database(database, copy)
            archive.write(copy, LOG)
            kept = [path for path in blob_paths(addresses_in_log(copy, blobs)) if (blobs / path).exists()]
            for path in kept:
                archive.write(blobs / path, f"{BLOBS}/{path}")
            for name, path in others.items():
                add_other(archive, name, path, Path(folder))
        sync(partial)
        partial.replace(file)
        return describe(file, copy, len(kept))


@contextmanager
def keep_blobs(folder: Path) -> Generator[None]:
    """No blob is deleted meanwhile."""
    if not folder.is_dir():
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def copy_database(source: Path, target: Path) -> None:
    """A snapshot in one step: in steps, it would begin again with each write of another process."""
    with (
        closing(sqlite3.connect(source, timeout=BUSY_TIMEOUT)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)
        new.execute("PRAGMA journal_mode = DELETE")


def blob_paths(addresses: set[str]) -> list[str]:
    return sorted(f"{address[:2]}/{address[2:]}" for address in addresses)


def add_other(archive: ZipFile, name: str, path: Path, folder: Path) -> None:
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                archive.write(file, f"{name}/{file.relative_to(path).as_posix()}")
    elif path.suffix == ".db" and path.exists():
        copy_database(path, folder / name)
        archive.write(folder / name, name)


def describe(file: Path, log: Path, blobs: int) -> Backup:
    with closing(sqlite3.connect(log)) as copy:
        chats, events = (read_number(copy, f"SELECT count(*) FROM {table}") for table in ("chats", "events"))  # noqa: S608  # our tables
    return Backup(file=str(file), bytes=file.stat().st_size, chats=chats, events=events, blobs=blobs)


def read_backup(file: Path, folder: Path) -> Backup:
    """Put a backup into an empty data folder; the log comes last, so that a chat never misses its blobs."""
    if (folder / LOG).exists():
        remedy = "set SEPTET_HOME to a new folder, or move that file away with its -wal and -shm"
        raise BadUsage(f"{folder / LOG} exists already", remedy)
    with store_errors(file), opened(file) as archive:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with TemporaryDirectory(dir=folder, prefix=".restore-") as temporary:
            new = Path(temporary)
            names = [name for name in archive.namelist() if not name.endswith("/")]
            for name in names:
                extract(archive, name, new)
            check_log(new / LOG, file)
            for name in sorted(names, key=lambda name: name == LOG):
                move(new / name, folder / name)
    blobs = sum(name.startswith(f"{BLOBS}/") for name in names)
    return describe(file, folder / LOG, blobs)


@contextmanager
def opened(file: Path) -> Generator[ZipFile]:
    try:
        with ZipFile(file) as archive:
            if LOG not in archive.namelist():
                raise BadUsage(f"{file} is not a backup", "name a file that septet backup has written")
            yield archive
    except BadZipFile as error:
        raise LogDamaged(f"{file} is not a backup, or is damaged ({error})", "take another backup") from error


def extract(archive: ZipFile, name: str, folder: Path) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise BadUsage(
            f"{archive.filename} names a file outside of itself: {name}", "it is not a backup of ours"
        )
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with archive.open(name) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    target.chmod(0o600)
    sync(target)
    if path.parts[0] == BLOBS and not is_intact(target, "".join(path.parts[1:])):
        raise LogDamaged(f"the blob {name} in {archive.filename} is damaged", "take another backup")


def check_log(log: Path, file: Path) -> None:
    reader = open_reader(log, BUSY_TIMEOUT)
    if reader is None:
        raise LogDamaged(f"the log in {file} is empty", "take another backup")
    with closing(reader):
        (found,) = reader.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise LogDamaged(f"the log in {file} is damaged ({found})", "take another backup")


def move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    source.replace(target)


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def free_bytes(database: Path) -> int:
    """Bytes in the log's file that hold nothing."""
    reader = open_reader(database, BUSY_TIMEOUT)
    if reader is None:
        return 0
    with store_errors(database), closing(reader):
        return read_number(reader, "PRAGMA freelist_count") * read_number(reader, "PRAGMA page_size")


def vacuum(database: Path, rewrite: bool = False) -> bool:
    """Give free space back to the disk in steps, so that chats work meanwhile.

    A log that an older Septet began cannot do so before it has been rewritten, and nobody can write meanwhile: a small
    one is rewritten at once, a bigger one if `rewrite` says so. Returns whether it was done.
    """
    if not database.exists():
        return True
    with closing(open_writer(database, BUSY_TIMEOUT)) as connection, store_errors(database):
        if not read_number(connection, "PRAGMA auto_vacuum"):
            if database.stat().st_size > SMALL_LOG and not rewrite:
                return False
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")
        while read_number(connection, "PRAGMA freelist_count"):
            connection.execute(f"PRAGMA incremental_vacuum({STEP_PAGES})").fetchall()
        with suppress(
            sqlite3.OperationalError
        ):  # a reader of an old snapshot; the file shrinks when it has gone
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return True
