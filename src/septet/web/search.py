"""Search over the words of all chats: a full-text index in memory, brought up to date from the log."""

import re
import sqlite3

import anyio

from septet.chat.exports import told
from septet.domain.values import Value
from septet.ports import EventStore

MOST = 50
LONGEST = 20_000
"""Characters of one event that are indexed."""
TABLE = "CREATE VIRTUAL TABLE said USING fts5(chat UNINDEXED, seq UNINDEXED, who UNINDEXED, words)"
FIND = """SELECT chat, seq, who, snippet(said, 3, '', '', '…', 16) FROM said
    WHERE said MATCH ? ORDER BY bm25(said) LIMIT ?"""


class Hit(Value, omit_defaults=False):
    chat: str
    seq: int
    who: str
    words: str


class Index:
    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._connection: sqlite3.Connection | None = None
        self._known: dict[str, int] = {}
        self._lock = anyio.Lock()

    async def find(self, words: str) -> list[Hit]:
        """Where these words, or words that begin so, were said; the best first."""
        query = " ".join(f'"{word}"*' for word in re.findall(r"\w+", words)[:12])
        if not query:
            return []
        async with self._lock:
            await self._refresh()
            return await anyio.to_thread.run_sync(self._hits, query)

    async def _refresh(self) -> None:
        for head in await self._store.chats():
            known = self._known.get(head.chat, 0)
            if head.seq > known:
                log = await self._store.read(head.chat, known)
                rows = [(head.chat, one.seq, *told(one)) for one in log]
                rows = [(chat, seq, who, text[:LONGEST]) for chat, seq, who, text in rows if text]
                await anyio.to_thread.run_sync(self._add, rows)
                self._known[head.chat] = log[-1].seq

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:", check_same_thread=False)
            self._connection.execute(TABLE)
        return self._connection

    def _add(self, rows: list[tuple[str, int, str, str]]) -> None:
        self._opened().executemany("INSERT INTO said VALUES (?, ?, ?, ?)", rows)

    def _hits(self, query: str) -> list[Hit]:
        found: list[tuple[str, int, str, str]] = self._opened().execute(FIND, (query, MOST)).fetchall()
        return [Hit(chat=chat, seq=seq, who=who, words=words) for chat, seq, who, words in found]
