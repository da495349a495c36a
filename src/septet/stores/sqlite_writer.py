"""The one thread that writes: appends that wait at the same time share a transaction and its fsync."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import time

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, checkpoint_if_cancelled, current_token

from septet.domain.codec import FORMAT, decode_event, encode_event, kind_of
from septet.domain.events import Event, Recorded
from septet.errors import SeptetError, StoreFailed
from septet.ports import Sequel
from septet.stores.fence import check_fence
from septet.stores.signals import Signals
from septet.stores.sqlite_file import named_errors, open_writer

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
