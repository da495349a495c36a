"""Full-text search over all chats: an index in memory, updated from the logs."""

import re
import sqlite3
from contextlib import suppress
from typing import Literal

import anyio

from septet.chat.export import speaker_and_text
from septet.common.values import Value
from septet.errors import LogDamaged
from septet.ports import ChatHead, EventStore

MAX_HITS = 50
MAX_INDEXED_LENGTH = 20_000
"""Characters of one event that are indexed."""
Order = Literal["best", "newest"]
ORDERS: dict[Order, str] = {"best": "bm25(said)", "newest": "at DESC, chat, seq DESC"}
TABLE = """CREATE VIRTUAL TABLE said USING fts5(
    chat UNINDEXED, seq UNINDEXED, at UNINDEXED, who UNINDEXED, words)"""
FIND = """SELECT chat, seq, at, who, snippet(said, 4, '', '', '…', 16) FROM said
    WHERE said MATCH ? ORDER BY {} LIMIT ?"""
Row = tuple[str, int, float, str, str]


class Hit(Value, omit_defaults=False):
    chat: str
    seq: int
    at: float
    who: str
    words: str


class SearchIndex:
    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._connection: sqlite3.Connection | None = None
        self._indexed: dict[str, int] = {}
        self._lock = anyio.Lock()

    async def find(self, words: str, order: Order = "best", limit: int = MAX_HITS) -> list[Hit]:
        """Find the events that contain all of these words, or words that begin with them."""
        query = query_of(words)
        if not query:
            return []
        async with self._lock:
            await self._refresh()
            return await anyio.to_thread.run_sync(self._hits, query, order, limit)

    async def _refresh(self) -> None:
        heads = await self._store.chats()
        await self._drop_removed({head.chat: head.seq for head in heads})
        for head in heads:
            if head.seq > self._indexed.get(head.chat, 0):
                with suppress(LogDamaged):  # the other chats stay searchable
                    await self._index(head)

    async def _drop_removed(self, heads: dict[str, int]) -> None:
        """Drop chats that were deleted or renamed, even if another chat has the name now."""
        for chat in [chat for chat, seq in self._indexed.items() if heads.get(chat, 0) < seq]:
            del self._indexed[chat]
            await anyio.to_thread.run_sync(self._drop, chat)

    async def _index(self, head: ChatHead) -> None:
        log = await self._store.read(head.chat, self._indexed.get(head.chat, 0))
        rows = [(head.chat, recorded.seq, recorded.at, *speaker_and_text(recorded)) for recorded in log]
        rows = [(chat, seq, at, who, text[:MAX_INDEXED_LENGTH]) for chat, seq, at, who, text in rows if text]
        await anyio.to_thread.run_sync(self._add, rows)
        if log:
            self._indexed[head.chat] = log[-1].seq

    def _database(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:", check_same_thread=False)
            self._connection.execute(TABLE)
        return self._connection

    def _add(self, rows: list[Row]) -> None:
        self._database().executemany("INSERT INTO said VALUES (?, ?, ?, ?, ?)", rows)

    def _drop(self, chat: str) -> None:
        self._database().execute("DELETE FROM said WHERE chat = ?", (chat,))

    def _hits(self, query: str, order: Order, limit: int) -> list[Hit]:
        rows_found: list[Row] = (
            self._database().execute(FIND.format(ORDERS[order]), (query, limit)).fetchall()
        )
        return [
            Hit(chat=chat, seq=seq, at=at, who=who, words=words) for chat, seq, at, who, words in rows_found
        ]


def query_of(words: str) -> str:
    """Return the words as an FTS5 query of prefixes; empty if there are none."""
    return " ".join(f'"{word}"*' for word in re.findall(r"[^\W_]+", words)[:12])
