"""Search over the words of all chats: a full-text index in memory, brought up to date from the log."""

import re
import sqlite3
from contextlib import suppress
from typing import Literal

import anyio

from septet.chat.export import event_in_words
from septet.common.values import Value
from septet.errors import LogDamaged
from septet.ports import ChatHead, EventStore

MOST = 50
LONGEST = 20_000
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
        self._known: dict[str, int] = {}
        self._lock = anyio.Lock()

    async def find(self, words: str, order: Order = "best", most: int = MOST) -> list[Hit]:
        """Where all of these words, or words that begin so, were said in one go."""
        query = query_of(words)
        if not query:
            return []
        async with self._lock:
            await self._refresh()
            return await anyio.to_thread.run_sync(self._hits, query, order, most)

    async def _refresh(self) -> None:
        heads = await self._store.chats()
        await self._forget_gone({head.chat: head.seq for head in heads})
        for head in heads:
            if head.seq > self._known.get(head.chat, 0):
                with suppress(LogDamaged):  # the others can be searched all the same
                    await self._learn(head)

    async def _forget_gone(self, heads: dict[str, int]) -> None:
        """A chat that was deleted or renamed, also where another one has its name now."""
        for chat in [chat for chat, seq in self._known.items() if heads.get(chat, 0) < seq]:
            del self._known[chat]
            await anyio.to_thread.run_sync(self._drop, chat)

    async def _learn(self, head: ChatHead) -> None:
        log = await self._store.read(head.chat, self._known.get(head.chat, 0))
        rows = [(head.chat, one.seq, one.at, *event_in_words(one)) for one in log]
        rows = [(chat, seq, at, who, text[:LONGEST]) for chat, seq, at, who, text in rows if text]
        await anyio.to_thread.run_sync(self._add, rows)
        if log:
            self._known[head.chat] = log[-1].seq

    def _database(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:", check_same_thread=False)
            self._connection.execute(TABLE)
        return self._connection

    def _add(self, rows: list[Row]) -> None:
        self._database().executemany("INSERT INTO said VALUES (?, ?, ?, ?, ?)", rows)

    def _drop(self, chat: str) -> None:
        self._database().execute("DELETE FROM said WHERE chat = ?", (chat,))

    def _hits(self, query: str, order: Order, most: int) -> list[Hit]:
        found: list[Row] = self._database().execute(FIND.format(ORDERS[order]), (query, most)).fetchall()
        return [Hit(chat=chat, seq=seq, at=at, who=who, words=words) for chat, seq, at, who, words in found]


def query_of(words: str) -> str:
    """The words as the index is asked for them; nothing where there are none."""
    return " ".join(f'"{word}"*' for word in re.findall(r"[^\W_]+", words)[:12])
