"""The event store in one SQLite file.

`SqliteStore` reads with a few connections in threads. `Writer` is the one thread that appends: all pending appends go
into one transaction, so that many chats share an fsync. The rest opens the file and translates its errors.
"""

import os
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import Struct

from septet.common.threads import has_event_loop, run_blocking
from septet.domain.codec import FORMAT, decode_event, encode_event, kind_of
from septet.domain.events import Event, Recorded
from septet.errors import LogDamaged, SeptetError, StoreFailed
from septet.ports import ChatHead, Sequel
from septet.stores.chat_locks import Signals, check_fence, name_taken, no_such_chat

if TYPE_CHECKING:
    import asyncio

    from anyio import CapacityLimiter

APPLICATION_ID = 0x53455054  # "SEPT", in the header of every log of ours
SCHEMA_VERSION = 1
BUSY_TIMEOUT = 10.0
"""Seconds to wait for another process that is writing."""

TABLES = (
    """CREATE TABLE events (
        id INTEGER PRIMARY KEY, chat TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
        fenced INTEGER NOT NULL, kind TEXT NOT NULL, v INTEGER NOT NULL, data BLOB NOT NULL,
        UNIQUE (chat, seq))""",
    """CREATE TABLE chats (
        chat TEXT PRIMARY KEY, seq INTEGER NOT NULL, fenced INTEGER NOT NULL,
        started REAL NOT NULL, changed REAL NOT NULL) WITHOUT ROWID""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
"""`chats` is an index over `events`, updated in the same transaction: the newest sequences of each chat."""

BY_CHANGE = "CREATE INDEX IF NOT EXISTS chats_by_change ON chats (changed DESC, chat)"
"""For a list that begins with the newest; logs of before get it from the next writer."""

HEAD = "SELECT seq, fenced, started, changed FROM chats WHERE chat = ?"
EVENTS = "SELECT seq, at, kind, v, data FROM events WHERE chat = ? AND seq > ? ORDER BY seq"
ADD_EVENT = "INSERT INTO events (chat, seq, at, fenced, kind, v, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
SET_HEAD = "INSERT OR REPLACE INTO chats (chat, seq, fenced, started, changed) VALUES (?, ?, ?, ?, ?)"
HEADS = "SELECT chat, seq, started, changed FROM chats ORDER BY changed DESC, chat LIMIT ?"
NEWEST = "SELECT coalesce(max(id), 0) FROM events"
CHANGED = "SELECT DISTINCT chat FROM events WHERE id > ? AND id <= ?"
RENAME = ("UPDATE events SET chat = ? WHERE chat = ?", "UPDATE chats SET chat = ? WHERE chat = ?")
DELETE = ("DELETE FROM events WHERE chat = ?", "DELETE FROM chats WHERE chat = ?")

MAX_EVENT_BYTES = 1 << 29
"""In bytes; SQLite's limit is 10⁹."""

Outcome = Sequence[Recorded] | Exception
Row = tuple[int, float, str, int, bytes]
T = TypeVar("T")

READERS = 4
MAX_HEADS = 10_000
"""How many chats' heads a writer remembers."""
POLL_INTERVAL = 0.1
"""Seconds between two checks for events of other processes, while there are watchers."""


@asynccontextmanager
async def open_store(path: Path, busy_timeout: float = BUSY_TIMEOUT) -> AsyncGenerator["SqliteStore"]:
    """The log at `path`. The first append creates the file; reading does not.

    `busy_timeout` is how many seconds to wait for other processes that write.
    """
    store = SqliteStore(path, busy_timeout)
    try:
        yield store
    finally:
        await store.close()


class SqliteStore:
    def __init__(self, path: Path, busy_timeout: float = BUSY_TIMEOUT) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._signals = Signals()
        self._writer = Writer(path, busy_timeout, self._signals)
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._polled = 0.0
        self._newest = 0

    @cached_property
    def _readers(self) -> "CapacityLimiter":
        from anyio import CapacityLimiter

        return CapacityLimiter(READERS)

    async def append(
        self, chat: str, event: Event, after: int | None, then: Sequel | None = None
    ) -> Sequence[Recorded]:
        return await self._writer.append(chat, event, after, then)

    async def read(self, chat: str, after: int = 0) -> Sequence[Recorded]:
        events = await self._query(lambda connection: read_events(connection, chat, after), [])
        if events and events[-1].seq - max(after, 0) != len(events):
            raise LogDamaged(f"events of '{chat}' are missing in {self._path}", "restore it from a backup")
        return events

    async def chats(self, most: int = 0) -> Sequence[ChatHead]:
        rows = await self._query(lambda connection: heads(connection, most), [])
        return [
            ChatHead(chat=chat, seq=seq, started=started, changed=changed)
            for chat, seq, started, changed in rows
        ]

    async def watch(self, chat: str, after: int = 0) -> AsyncIterator[Recorded]:
        from anyio import move_on_after

        while True:
            changed = self._signals.event_of(chat)
            for recorded in await self.read(chat, after):
                yield recorded
                after = recorded.seq
            while not changed.is_set():
                with move_on_after(POLL_INTERVAL):
                    await changed.wait()
                await self._poll()

    async def rename(self, chat: str, name: str) -> None:
        await run_blocking(lambda: self._rename(chat, name))

    def _rename(self, chat: str, name: str) -> None:
        with self._transaction() as connection:
            if not connection.execute(HEAD, (chat,)).fetchone():
                raise no_such_chat(chat)
            if connection.execute(HEAD, (name,)).fetchone():
                raise name_taken(name)
            for statement in RENAME:
                connection.execute(statement, (name, chat))

    async def delete(self, chat: str) -> None:
        await run_blocking(lambda: self._delete(chat))

    def _delete(self, chat: str) -> None:
        with self._transaction() as connection:
            for statement in DELETE:
                connection.execute(statement, (chat,))

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """A transaction on a separate connection; deleted data is overwritten on disk."""
        with closing(open_writer(self._path, self._busy_timeout)) as connection, store_errors(self._path):
            connection.execute("PRAGMA secure_delete = ON")
            with transaction(connection):
                yield connection

    async def close(self) -> None:
        self._closed = True
        await self._writer.close()
        while self._idle:
            self._idle.pop().close()

    async def _poll(self) -> None:
        """Wake the watchers of chats that other processes changed; one query serves all watchers."""
        now = monotonic()
        if now - self._polled < POLL_INTERVAL:
            return
        self._polled = now
        since = self._newest
        newest, chats = await self._query(lambda connection: changed_since(connection, since), (since, []))
        self._newest = max(self._newest, newest)
        if since:
            self._signals.notify(chats)
        else:
            self._signals.notify_all()

    async def _query(self, query: Callable[[sqlite3.Connection], T], default: T) -> T:
        limiter = self._readers if has_event_loop() else None
        return await run_blocking(lambda: self._query_now(query, default), limiter)

    def _query_now(self, query: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Run a query with an idle connection; returns `default` if there is no log yet."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = open_reader(self._path, self._busy_timeout)
        if connection is None:
            return default
        try:
            with store_errors(self._path):
                return query(connection)
        finally:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)


def heads(connection: sqlite3.Connection, most: int) -> list[tuple[str, int, float, float]]:
    return connection.execute(HEADS, (most or -1,)).fetchall()


def changed_since(connection: sqlite3.Connection, since: int) -> tuple[int, list[str]]:
    """The id of the newest event, and the chats that changed after the event `since`."""
    (newest,) = connection.execute(NEWEST).fetchone()
    if newest == since or not since:
        return newest, []
    return newest, [chat for (chat,) in connection.execute(CHANGED, (since, newest))]


class PendingAppend(Struct, eq=False):
    """An append that waits for the writer."""

    chat: str
    event: Event
    after: int | None
    then: Sequel | None
    data: bytes
    done: "asyncio.Future[None]"
    outcome: Outcome = ()


class Writer:
    """The thread that appends. The first append starts it; if opening the file fails, the next one tries again."""

    def __init__(self, path: Path, busy_timeout: float, signals: Signals) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._signals = signals
        self._gathered: list[PendingAppend] = []
        """Appends of this pass of the event loop, which wake the thread once."""
        self._pending: SimpleQueue[list[PendingAppend]] = SimpleQueue()
        """An empty list ends the thread."""
        self._thread: Thread | None = None
        self._rows: RowWriter | None = None

    async def append(
        self, chat: str, event: Event, after: int | None, then: Sequel | None
    ) -> Sequence[Recorded]:
        from asyncio import get_running_loop

        from anyio import CancelScope
        from anyio.lowlevel import checkpoint_if_cancelled

        await checkpoint_if_cancelled()
        data = encode_event(event)
        if len(data) > MAX_EVENT_BYTES:
            raise StoreFailed(f"an event of {len(data)} bytes is too big for the log", "keep it as a blob")
        loop = get_running_loop()
        if self._thread is None:
            self._thread = Thread(target=self._run, args=(loop,), name="log", daemon=True)
            self._thread.start()
        pending = PendingAppend(chat, event, after, then, data, loop.create_future())
        if not self._gathered:
            loop.call_soon(self._hand_over)
        self._gathered.append(pending)
        # A cancelled caller must still learn the outcome: otherwise its next append would conflict with this
        # event as if another conductor had written it.
        with CancelScope(shield=True):
            await pending.done
        if isinstance(pending.outcome, Exception):
            raise pending.outcome
        return pending.outcome

    def _hand_over(self) -> None:
        if self._gathered:
            self._pending.put(self._gathered)
            self._gathered = []

    async def close(self) -> None:
        if self._thread is None:
            return
        from anyio import CancelScope, to_thread

        self._hand_over()
        self._pending.put([])
        with CancelScope(shield=True):
            await to_thread.run_sync(self._thread.join)
        self._thread = None

    def _run(self, loop: "asyncio.AbstractEventLoop") -> None:
        while batch := self._next_batch():
            try:
                self._commit(batch)
            except Exception as error:  # a defect must reach the waiting callers, not end this thread
                for pending in batch:
                    pending.outcome = error
            try:
                loop.call_soon_threadsafe(self._finish, batch)
            except RuntimeError:  # the loop has ended without closing the store
                break
        if self._rows is not None:
            self._rows.connection.close()
            self._rows = None

    def _next_batch(self) -> list[PendingAppend]:
        """All pending appends, at least one; empty when the store closes."""
        batch: list[PendingAppend] = []
        while pending := self._pending.get():
            batch += pending
            if self._pending.empty():
                return batch
        if batch:
            self._pending.put([])
        return batch

    def _commit(self, batch: list[PendingAppend]) -> None:
        if self._rows is None:
            self._rows = RowWriter(open_writer(self._path, self._busy_timeout))
        with store_errors(self._path):
            self._rows.commit(batch)

    def _finish(self, batch: list[PendingAppend]) -> None:
        for pending in batch:
            if not pending.done.done():  # by a loop that is being shut down
                pending.done.set_result(None)
        self._signals.notify({pending.chat for pending in batch})


class Head(NamedTuple):
    """The newest sequences of a chat, and when it began and last changed."""

    seq: int = 0
    fenced: int = 0
    started: float = 0.0
    changed: float = 0.0


class RowWriter:
    """Stores batches. Knows the heads of the chats that it wrote, until another connection has written."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._heads: dict[str, Head] = {}
        self._version = 0
        self._events: list[tuple[str, int, float, bool, str, int, bytes]] = []
        self._changed: set[str] = set()

    def commit(self, batch: Iterable[PendingAppend]) -> None:
        """Store the whole batch in one transaction: durably if this returns, not at all if it raises."""
        try:
            with transaction(self.connection):
                self._check_heads()
                for pending in batch:
                    pending.outcome = self._insert(pending)
                self._write()
        except BaseException:
            self._heads.clear()
            raise
        finally:
            self._events.clear()
            self._changed.clear()

    def _check_heads(self) -> None:
        version = read_number(self.connection, "PRAGMA data_version")
        if version != self._version or len(self._heads) > MAX_HEADS:
            self._heads.clear()
        self._version = version

    def _insert(self, pending: PendingAppend) -> Outcome:
        """Add one event and its sequel, or return the error, without affecting the rest of the transaction."""
        chat, after = pending.chat, pending.after
        head = self._heads.get(chat) or Head(*(self.connection.execute(HEAD, (chat,)).fetchone() or ()))
        at, added = max(time(), head.changed), [(pending.event, pending.data)]
        try:
            check_fence(chat, head.seq, head.fenced, after)
            unseen = [] if after in {None, head.seq} else self._read(chat, after or 0)
        except SeptetError as error:
            return error
        unseen.append(Recorded(chat=chat, seq=head.seq + 1, at=at, event=pending.event))
        if pending.then is not None:
            try:
                sequel = pending.then(unseen)
            except Exception as error:  # a defect in this chat's sequel must not fail the appends of others
                return error
            added.append((sequel, encode_event(sequel)))
            unseen.append(Recorded(chat=chat, seq=head.seq + 2, at=at, event=sequel))
        is_fenced = after is not None
        for seq, (event, data) in enumerate(added, start=head.seq + 1):
            self._events.append((chat, seq, at, is_fenced, kind_of(event), FORMAT, data))
        newest = head.seq + len(added)
        self._heads[chat] = Head(newest, newest if is_fenced else head.fenced, head.started or at, at)
        self._changed.add(chat)
        return unseen

    def _read(self, chat: str, after: int) -> list[Recorded]:
        self._write()
        return read_events(self.connection, chat, after)

    def _write(self) -> None:
        self.connection.executemany(ADD_EVENT, self._events)
        self.connection.executemany(SET_HEAD, [(chat, *self._heads[chat]) for chat in self._changed])
        self._events.clear()
        self._changed.clear()


def read_events(connection: sqlite3.Connection, chat: str, after: int) -> list[Recorded]:
    rows: list[Row] = connection.execute(EVENTS, (chat, after)).fetchall()
    return [
        Recorded(chat=chat, seq=seq, at=at, event=decode_event(kind, data, version))
        for seq, at, kind, version, data in rows
    ]


def open_reader(path: Path, busy_timeout: float) -> sqlite3.Connection | None:
    """A read-only connection; None if there is no log yet. Never creates a file."""
    with store_errors(path):
        if not path.exists():
            return None
        connection = open_connection(path, busy_timeout)
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


def open_writer(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """A connection for writing; creates the file and its folder if they are missing."""
    with store_errors(path):
        create_file(path)
        connection = open_connection(path, busy_timeout)
        try:
            if not is_ready(connection, path):
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only an empty file can be told
                enable_wal(connection, path, busy_timeout)
                create_tables(connection, path)
            connection.execute(BY_CHANGE)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection


def create_file(path: Path) -> None:
    """Create an empty file, which is an empty database. Only its owner can read it, because chats are private."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def open_connection(path: Path, busy_timeout: float) -> sqlite3.Connection:
    # Each connection is used by one thread at a time, but not always by the same one.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,
        check_same_thread=False,
    )


def is_ready(connection: sqlite3.Connection, path: Path) -> bool:
    """True for a Septet log, False for an empty file. Raises LogDamaged for anything else, before changing it."""
    connection.execute("BEGIN")
    application = read_number(connection, "PRAGMA application_id")
    layout = read_number(connection, "PRAGMA user_version")
    tables = read_number(connection, "SELECT count(*) FROM sqlite_master")
    connection.execute("COMMIT")
    if (application, layout, tables) == (0, 0, 0):
        return False
    if application != APPLICATION_ID:
        raise LogDamaged(f"{path} is a database of another program", "move it away or name another file")
    if layout > SCHEMA_VERSION:
        raise LogDamaged(f"{path} was written by a newer Septet (layout {layout})", "update Septet")
    return True


def read_number(connection: sqlite3.Connection, query: str) -> int:
    row: tuple[int] = connection.execute(query).fetchone()
    return row[0]


def enable_wal(connection: sqlite3.Connection, path: Path, busy_timeout: float) -> None:
    """Enable WAL; wait ourselves, because SQLite does not when two processes do this at once."""
    deadline = monotonic() + busy_timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(0.01)
    if mode != "wal":
        raise StoreFailed(
            f"the file system of {path} does not support the log (no WAL)", "put it on a local disk"
        )


def create_tables(connection: sqlite3.Connection, path: Path) -> None:
    with transaction(connection):
        if read_number(connection, "SELECT count(*) FROM sqlite_master") == 0:
            for statement in TABLES:
                connection.execute(statement)
    is_ready(connection, path)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Commit everything written in the context, or roll back on an exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


@contextmanager
def store_errors(path: Path) -> Generator[None]:
    """Raise StoreFailed, with cause and remedy, for errors of the database and the file system."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error, path) from error
    except OSError as error:
        raise StoreFailed(
            f"{path} cannot be used ({error.strerror})", "check the path, its permissions and the disk"
        ) from error


def store_error(error: sqlite3.Error, path: Path) -> StoreFailed:
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
            return StoreFailed(f"the disk of {path} is full", "free some space and resume")
        case _:
            return StoreFailed(
                f"{path} cannot be read or written ({error})", "check its permissions and the disk"
            )
