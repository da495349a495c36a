"""The log's file: its layout, how it is opened, and what its errors mean to a person."""

import os
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic, sleep, time
from typing import TypeVar

import anyio
from anyio import from_thread, to_thread
from anyio.lowlevel import EventLoopToken, checkpoint_if_cancelled, current_token

from septet.domain.codec import FORMAT, decode_event, encode_event, kind_of
from septet.domain.events import Event, Recorded
from septet.errors import Conflict, LogDamaged, SeptetError, StoreFailed
from septet.ports import ChatHead, Sequel
from septet.stores.fence import Signals, check_fence

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
    deadline = monotonic() + patience
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(0.01)
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


HEAD = "SELECT seq, fenced, started, changed FROM chats WHERE chat = ?"
EVENTS = "SELECT seq, at, kind, v, data FROM events WHERE chat = ? AND seq > ? ORDER BY seq"
ADD_EVENT = "INSERT INTO events (chat, seq, at, fenced, kind, v, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
SET_HEAD = "INSERT OR REPLACE INTO chats (chat, seq, fenced, started, changed) VALUES (?, ?, ?, ?, ?)"
BIGGEST = 1 << 29
"""Bytes of one event; SQLite ends at 10⁹."""

Outcome = Sequence[Recorded] | Exception
Row = tuple[int, float, str, int, bytes]


@dataclass(slots=True)
class Job:
    """An append that waits."""

    chat: str
    event: Event
    after: int | None
    then: Sequel | None
    data: bytes
    done: anyio.Event = field(default_factory=anyio.Event)
    outcome: Outcome = ()


class Writer:
    """Starts its thread with the first append; a failed opening is tried again with the next one."""

    def __init__(self, path: Path, patience: float, signals: Signals) -> None:
        self._path = path
        self._patience = patience
        self._signals = signals
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._connection: sqlite3.Connection | None = None

    async def append(
        self, chat: str, event: Event, after: int | None, then: Sequel | None
    ) -> Sequence[Recorded]:
        await checkpoint_if_cancelled()
        data = encode_event(event)
        if len(data) > BIGGEST:
            raise StoreFailed(f"an event of {len(data)} bytes is too big for the log", "keep it as a blob")
        if self._thread is None:
            self._thread = Thread(target=self._work, args=(current_token(),), name="log", daemon=True)
            self._thread.start()
        job = Job(chat, event, after, then, data)
        self._jobs.put(job)
        # A cancelled caller still learns what became of its event: otherwise its next append would
        # meet this one as if another conductor had written it.
        with anyio.CancelScope(shield=True):
            await job.done.wait()
        if isinstance(job.outcome, Exception):
            raise job.outcome
        return job.outcome

    async def close(self) -> None:
        if self._thread is None:
            return
        self._jobs.put(None)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._thread.join)
        self._thread = None

    def _work(self, loop: EventLoopToken) -> None:
        while jobs := self._waiting():
            try:
                self._commit(jobs)
            except Exception as error:  # a defect must reach those who wait, not end this thread
                for job in jobs:
                    job.outcome = error
            try:
                from_thread.run_sync(self._settle, jobs, token=loop)
            except RuntimeError:  # the loop has ended without closing the store
                break
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _waiting(self) -> list[Job]:
        """All appends that wait, at least one; none when the store closes."""
        jobs: list[Job] = []
        job = self._jobs.get()
        while job is not None:
            jobs.append(job)
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return jobs
        if jobs:
            self._jobs.put(None)
        return jobs

    def _commit(self, jobs: list[Job]) -> None:
        if self._connection is None:
            self._connection = open_writer(self._path, self._patience)
        with named_errors(self._path):
            commit(self._connection, jobs)

    def _settle(self, jobs: list[Job]) -> None:
        for job in jobs:
            job.done.set()
        self._signals.tell({job.chat for job in jobs})


def commit(connection: sqlite3.Connection, jobs: Iterable[Job]) -> None:
    """All of the jobs in one transaction: stored for good when this returns, not at all when it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for job in jobs:
            job.outcome = place(connection, job)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def place(connection: sqlite3.Connection, job: Job) -> Outcome:
    """Store one event and its sequel, or say why not without touching the others of the transaction."""
    last, fenced, started, changed = connection.execute(HEAD, (job.chat,)).fetchone() or (0, 0, 0.0, 0.0)
    at, mine = max(time(), changed), [(job.event, job.data)]
    try:
        check_fence(job.chat, last, fenced, job.after)
        news = [] if job.after in {None, last} else rows(connection, job.chat, job.after or 0)
    except SeptetError as error:
        return error
    news.append(Recorded(chat=job.chat, seq=last + 1, at=at, event=job.event))
    if job.then is not None:
        try:
            sequel = job.then(news)
        except Exception as error:  # a defect in what the writer of this chat decides is nobody else's
            return error
        mine.append((sequel, encode_event(sequel)))
        news.append(Recorded(chat=job.chat, seq=last + 2, at=at, event=sequel))
    is_fenced = job.after is not None
    for seq, (event, data) in enumerate(mine, start=last + 1):
        connection.execute(ADD_EVENT, (job.chat, seq, at, is_fenced, kind_of(event), FORMAT, data))
    newest = last + len(mine)
    connection.execute(SET_HEAD, (job.chat, newest, newest if is_fenced else fenced, started or at, at))
    return news


def rows(connection: sqlite3.Connection, chat: str, after: int) -> list[Recorded]:
    found: list[Row] = connection.execute(EVENTS, (chat, after)).fetchall()
    return [
        Recorded(chat=chat, seq=seq, at=at, event=decode_event(kind, data, version))
        for seq, at, kind, version, data in found
    ]


Upkeep = Callable[[sqlite3.Connection], None]


async def rename_chat(path: Path, old: str, new: str) -> None:
    """The same log under another name; a conductor that is at work on it meets a conflict."""

    def work(connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT 1 FROM chats WHERE chat = ?", (new,)).fetchone():
            raise Conflict(f"a chat '{new}' exists already", "choose another name")
        connection.execute("UPDATE events SET chat = ? WHERE chat = ?", (new, old))
        connection.execute("UPDATE chats SET chat = ? WHERE chat = ?", (new, old))

    await to_thread.run_sync(in_one_go, path, work)


async def forget_chat(path: Path, chat: str) -> None:
    """Take the chat out of the log; its bytes are overwritten."""

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM events WHERE chat = ?", (chat,))
        connection.execute("DELETE FROM chats WHERE chat = ?", (chat,))

    await to_thread.run_sync(in_one_go, path, work)


def in_one_go(path: Path, work: Upkeep) -> None:
    connection = open_writer(path, PATIENCE)
    try:
        with named_errors(path):
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            try:
                work(connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise
    finally:
        connection.close()


T = TypeVar("T")

HEADS = "SELECT chat, seq, started, changed FROM chats ORDER BY changed DESC, chat"
NEWEST = "SELECT coalesce(max(id), 0) FROM events"
MOVED = "SELECT DISTINCT chat FROM events WHERE id > ? AND id <= ?"
READERS = 4
GLANCE = 0.1
"""Seconds between two looks for what other processes have written, while somebody watches."""


@asynccontextmanager
async def open_store(path: Path, patience: float = PATIENCE) -> AsyncGenerator["SqliteStore"]:
    """The log at `path`. The file is made by the first append: who only reads leaves nothing behind."""
    store = SqliteStore(path, patience)
    try:
        yield store
    finally:
        await store.close()


class SqliteStore:
    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self._path = path
        self._patience = patience
        self._signals = Signals()
        self._writer = Writer(path, patience, self._signals)
        self._idle: list[sqlite3.Connection] = []
        self._readers = anyio.CapacityLimiter(READERS)
        self._closed = False
        self._looked = 0.0
        self._newest = 0

    async def append(
        self, chat: str, event: Event, after: int | None, then: Sequel | None = None
    ) -> Sequence[Recorded]:
        return await self._writer.append(chat, event, after, then)

    async def read(self, chat: str, after: int = 0) -> Sequence[Recorded]:
        found = await self._ask(lambda connection: rows(connection, chat, after), [])
        if found and found[-1].seq - max(after, 0) != len(found):
            raise LogDamaged(f"events of '{chat}' are missing in {self._path}", "restore it from a backup")
        return found

    async def chats(self) -> Sequence[ChatHead]:
        found = await self._ask(heads, [])
        return [
            ChatHead(chat=chat, seq=seq, started=started, changed=changed)
            for chat, seq, started, changed in found
        ]

    async def watch(self, chat: str, after: int = 0) -> AsyncIterator[Recorded]:
        while True:
            moved = self._signals.of(chat)
            for recorded in await self.read(chat, after):
                yield recorded
                after = recorded.seq
            while not moved.is_set():
                with anyio.move_on_after(GLANCE):
                    await moved.wait()
                await self._look_around()

    async def close(self) -> None:
        self._closed = True
        await self._writer.close()
        while self._idle:
            self._idle.pop().close()

    async def _look_around(self) -> None:
        """Wake the watchers of chats that other processes have moved; one look serves all watchers."""
        now = monotonic()
        if now - self._looked < GLANCE:
            return
        self._looked = now
        since = self._newest
        newest, moved = await self._ask(lambda connection: news(connection, since), (since, []))
        self._newest = max(self._newest, newest)
        if since:
            self._signals.tell(moved)
        else:
            self._signals.tell_all()

    async def _ask(self, question: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        return await anyio.to_thread.run_sync(self._query, question, otherwise, limiter=self._readers)

    def _query(self, question: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Ask with a connection that nobody else uses now; `otherwise` where there is no log yet."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = open_reader(self._path, self._patience)
        if connection is None:
            return otherwise
        try:
            with named_errors(self._path):
                return question(connection)
        finally:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)


def heads(connection: sqlite3.Connection) -> list[tuple[str, int, float, float]]:
    return connection.execute(HEADS).fetchall()


def news(connection: sqlite3.Connection, since: int) -> tuple[int, list[str]]:
    """The newest event's number, and the chats that have moved since another one."""
    (newest,) = connection.execute(NEWEST).fetchone()
    if newest == since or not since:
        return newest, []
    return newest, [chat for (chat,) in connection.execute(MOVED, (since, newest))]
