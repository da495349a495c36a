"""Full-text search over all chats: an index that is brought up to date from the logs before each search."""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

import anyio

from septet.chat.export import speaker_and_text
from septet.chat.index_file import IndexFile, forget_chat
from septet.common.values import Value
from septet.domain.events import Recorded
from septet.errors import LogDamaged
from septet.ports import ChatHead, EventStore

MAX_HITS = 50
MAX_INDEXED_LENGTH = 20_000
"""Characters of one event that are indexed."""
MAX_RANKED = 2000
"""The best hits are looked for among so many, the newest: ranking reads each of them."""
TICKS = 1 << 20
"""Ids of texts in a second: the index lists hits by their ids, so ids that grow with time make the newest first."""
Order = Literal["best", "newest"]
NEWEST = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY rowid DESC LIMIT ?"
BEST = """SELECT rowid FROM said WHERE said MATCH ?1 AND rowid >= (
    SELECT min(rowid) FROM (SELECT rowid FROM said WHERE said MATCH ?1 ORDER BY rowid DESC LIMIT {ranked}))
    ORDER BY bm25(said) LIMIT ?2""".replace("{ranked}", str(MAX_RANKED))
ORDERS: dict[Order, str] = {"best": BEST, "newest": NEWEST}
SHOW = """SELECT chat, seq, at, who, snippet(said, 0, '', '', '…', 16) FROM said JOIN texts ON texts.id = said.rowid
    WHERE said MATCH ? AND said.rowid = ?"""
INDEXED = "SELECT chat, seq, started FROM indexed"
SET_INDEXED = "INSERT OR REPLACE INTO indexed VALUES (?, ?, ?)"
ADD_TEXT = "INSERT OR IGNORE INTO texts VALUES (?, ?, ?, ?, ?, ?)"
ADD_WORDS = "INSERT INTO said (rowid, words) VALUES (?, ?)"
Row = tuple[str, int, float, str, str]


class Hit(Value, omit_defaults=False):
    chat: str
    seq: int
    at: float
    who: str
    words: str


class SearchIndex:
    """The words of the chats of a store; `index` keeps them for other processes."""

    def __init__(self, store: EventStore, index: IndexFile | None = None) -> None:
        self._store = store
        self._index = index or IndexFile()
        self._lock = anyio.Lock()

    async def find(self, words: str, order: Order = "best", limit: int = MAX_HITS) -> list[Hit]:
        """Find the events that contain all of these words, or words that begin with them."""
        query = query_of(words)
        if not query:
            return []
        async with self._lock:
            heads = await self._store.chats()
            if not heads:
                return []
            await self._refresh(heads)
            return await self._index.use(lambda index: hits(index, query, order, limit))

    async def _refresh(self, heads: Sequence[ChatHead]) -> None:
        """Read what is new in the logs, and forget the chats that are gone or have another name."""
        known = await self._index.use(indexed)
        present = {head.chat: head for head in heads}
        if gone := [chat for chat, end in known.items() if not continues(present.get(chat), *end)]:
            await self._index.use(lambda index: [forget_chat(index, chat) for chat in gone])
        for head in reversed(heads):
            after = 0 if head.chat in gone else known.get(head.chat, (0, 0.0))[0]
            if head.seq > after:
                with suppress(LogDamaged):  # the other chats stay searchable
                    log = await self._store.read(head.chat, after)
                    await self._index.use(lambda index, head=head, log=log: add(index, head, log))


def continues(head: ChatHead | None, seq: int, started: float) -> bool:
    """Whether the chat is the one that was indexed, and not another of its name."""
    return head is not None and head.seq >= seq and head.started == started


def indexed(index: sqlite3.Connection) -> Mapping[str, tuple[int, float]]:
    return {chat: (seq, started) for chat, seq, started in index.execute(INDEXED)}


def add(index: sqlite3.Connection, head: ChatHead, log: Sequence[Recorded]) -> None:
    """Index the events, unless another process has done so in the meantime."""
    (done,) = index.execute("SELECT max(seq) FROM indexed WHERE chat = ?", (head.chat,)).fetchone()
    for recorded in log:
        if recorded.seq > (done or 0):
            who, text = speaker_and_text(recorded)
            add_text(index, (head.chat, recorded.seq, recorded.at, who, text[:MAX_INDEXED_LENGTH]))
    if log:
        index.execute(SET_INDEXED, (head.chat, max(log[-1].seq, done or 0), head.started))


def add_text(index: sqlite3.Connection, row: Row) -> None:
    if words := row[4]:
        number = int(row[2] * TICKS)
        while not index.execute(ADD_TEXT, (number, *row)).rowcount:
            number += 1
        index.execute(ADD_WORDS, (number, words))


def hits(index: sqlite3.Connection, query: str, order: Order, limit: int) -> list[Hit]:
    numbers = [number for (number,) in index.execute(ORDERS[order], (query, limit)).fetchall()]
    rows: list[Row] = [index.execute(SHOW, (query, number)).fetchone() for number in numbers]
    return [Hit(chat=chat, seq=seq, at=at, who=who, words=words) for chat, seq, at, who, words in rows]


def query_of(words: str) -> str:
    """Return the words as an FTS5 query of prefixes; empty if there are none."""
    return " ".join(f'"{word}"*' for word in re.findall(r"[^\W_]+", words)[:12])
