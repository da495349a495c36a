"""The log's file: its layout, how it is opened, and what its errors mean to a person."""

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from septet.errors import LogDamaged, StoreFailed

APPLICATION = 0x53455054  # "SEPT", in the header of every log of ours
LAYOUT = 1
PATIENCE = 10.0
"""Seconds to wait for another process that is writing."""

TABLES = (
    """CREATE TABLE events (
        id INTEGER PRIMARY KEY, chat TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
        fenced INTEGER NOT NULL, kind TEXT NOT NULL, v INTEGER NOT NULL, data BLOB NOT NULL,
        UNIQUE (chat, seq))""",
    """CREATE TABLE chats (
        chat TEXT PRIMARY KEY, seq INTEGER NOT NULL, fenced INTEGER NOT NULL,
        started REAL NOT NULL, changed REAL NOT NULL) WITHOUT ROWID""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {LAYOUT}",
)
"""`chats` is an index over `events`, moved in the same transaction: the newest sequences of each chat."""


def open_reader(path: Path, patience: float) -> sqlite3.Connection | None:
    """A connection that only reads; None where there is no log yet. Never makes a file."""
    with named_errors(path):
        if not path.exists():
            return None
        connection = connect(path, patience)
        try:
            connection.execute("PRAGMA query_only = ON")
            ready = is_ready(connection, path)
        except BaseException:
            connection.close()
            raise
        if ready:
            return connection
        connection.close()
        return None


def open_writer(path: Path, patience: float) -> sqlite3.Connection:
    """A connection that writes; the file and its folder are made where they are missing."""
    with named_errors(path):
        make_file(path)
        connection = connect(path, patience)
        try:
            if not is_ready(connection, path):
                turn_on_wal(connection, path, patience)
                create_tables(connection, path)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection


def make_file(path: Path) -> None:
    """An empty file is an empty database. Only its owner may read it: chats hold private things."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def connect(path: Path, patience: float) -> sqlite3.Connection:
    # Each connection is used by one thread at a time, but not always by the same one.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,
    )


def is_ready(connection: sqlite3.Connection, path: Path) -> bool:
    """True for a log of ours, False for an empty file; anything else is refused before it is touched."""
    connection.execute("BEGIN")
    application = number(connection, "PRAGMA application_id")
    layout = number(connection, "PRAGMA user_version")
    tables = number(connection, "SELECT count(*) FROM sqlite_master")
    connection.execute("COMMIT")
    if (application, layout, tables) == (0, 0, 0):
        return False
    if application != APPLICATION:
        raise LogDamaged(f"{path} is a database of another program", "move it away or name another file")
    if layout > LAYOUT:
        raise LogDamaged(f"{path} was written by a newer Septet (layout {layout})", "update Septet")
    return True


def number(connection: sqlite3.Connection, query: str) -> int:
    found: tuple[int] = connection.execute(query).fetchone()
    return found[0]


def turn_on_wal(connection: sqlite3.Connection, path: Path, patience: float) -> None:
    """SQLite does not wait by itself when two processes do this at once."""
    deadline = time.monotonic() + patience
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise StoreFailed(f"the file system of {path} cannot hold a log", "put it on a local disk")


def create_tables(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if number(connection, "SELECT count(*) FROM sqlite_master") == 0:
            for statement in TABLES:
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
    is_ready(connection, path)


@contextmanager
def named_errors(path: Path) -> Generator[None]:
    """Errors of the database and the file system as cause and remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise failure(error, path) from error
    except OSError as error:
        raise StoreFailed(
            f"{path} cannot be used ({error.strerror})", "check the path, its permissions and the disk"
        ) from error


def failure(error: sqlite3.Error, path: Path) -> StoreFailed:
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF:
        case sqlite3.SQLITE_NOTADB:
            return LogDamaged(f"{path} is not a Septet log", "move it away or name another file")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_ERROR:
            return LogDamaged(
                f"{path} is damaged ({error})", "restore a backup, or try `sqlite3 FILE .recover`"
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreFailed(f"{path} is locked by another program", "try again when that has finished")
        case sqlite3.SQLITE_FULL:
            return StoreFailed(f"the disk of {path} is full", "free some room and resume")
        case _:
            return StoreFailed(
                f"{path} cannot be read or written ({error})", "check its permissions and the disk"
            )
