"""The event store in one SQLite file: durable, safe for several processes, no server."""

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import TypeVar

import anyio

from septet.domain.events import Event, Recorded
from septet.errors import LogDamaged
from septet.ports import ChatHead, Sequel
from septet.stores.signals import Signals
from septet.stores.sqlite_file import PATIENCE, named_errors, open_reader
from septet.stores.sqlite_writer import Writer, rows

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
