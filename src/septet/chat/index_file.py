"""A database of what is computed from the logs, so that it need not be computed again.

It can be deleted at any time. One that is damaged or has another layout is deleted here; where none can be written, the
process keeps its own in memory.
"""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TypeVar

from septet.common.threads import run_blocking

LAYOUT = 2
"""To be raised with every change of the tables, and of what a summary means."""
BUSY_TIMEOUT = 10.0
TABLES = (
    "CREATE TABLE summaries (chat TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE indexed (chat TEXT PRIMARY KEY, seq INTEGER NOT NULL, started REAL NOT NULL) WITHOUT ROWID",
    """CREATE TABLE texts (id INTEGER PRIMARY KEY, chat TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
        who TEXT NOT NULL, words TEXT NOT NULL)""",
    "CREATE INDEX texts_by_chat ON texts (chat)",
    "CREATE VIRTUAL TABLE said USING fts5(words, content = 'texts', content_rowid = 'id')",
    f"PRAGMA user_version = {LAYOUT}",
)
SECURE_DELETE = (3, 42)
"""The SQLite from which on words of deleted texts leave a full-text index at once; before, when it is rewritten."""

T = TypeVar("T")


class IndexFile:
    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._lock = Lock()

    async def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work in one transaction, in a thread."""
        return await run_blocking(lambda: self._use(work))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            try:
                return self._work(work)
            except (sqlite3.OperationalError, OSError):  # locked, full, not ours to write
                self._leave(None)
            except sqlite3.DatabaseError:  # damaged
                self._leave(self._path)
                delete_index(self._path)
            return self._work(work)

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection = self._connection or open_index(self._path)
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            return work(connection)

    def _leave(self, path: Path | None) -> None:
        self._path = path
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def open_index(path: Path | None) -> sqlite3.Connection:
    if path is not None and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)  # it holds words of the chats, which are private
    connection = connect(path)
    if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, LAYOUT):
        connection.close()
        delete_index(path)
        return open_index(path)
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in TABLES:
                connection.execute(statement)
    return connection


def connect(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path or ":memory:", timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in ("journal_mode = WAL", "synchronous = OFF", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def delete_index(path: Path | None) -> None:
    for suffix in ("", "-wal", "-shm"):
        if path is not None:
            with suppress(OSError):
                path.with_name(path.name + suffix).unlink()


def forget_chat(connection: sqlite3.Connection, chat: str) -> None:
    """Delete everything about the chat."""
    secure = sqlite3.sqlite_version_info >= SECURE_DELETE
    if secure:
        connection.execute("INSERT INTO said (said, rank) VALUES ('secure-delete', 1)")
    connection.execute(
        "INSERT INTO said (said, rowid, words) SELECT 'delete', id, words FROM texts WHERE chat = ?", (chat,)
    )
    for table in ("texts", "indexed", "summaries"):
        connection.execute(f"DELETE FROM {table} WHERE chat = ?", (chat,))  # noqa: S608  # names of our own
    if not secure:
        connection.execute("INSERT INTO said (said) VALUES ('optimize')")
