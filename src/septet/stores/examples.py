"""The exemplar's knowledge base: SQLite's full-text index, ranked by bm25, with identifiers split into words."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path

from anyio import to_thread

from septet.domain.examples import LONGEST_SNIPPET, Example, words
from septet.errors import StoreFailed

TABLE = """CREATE VIRTUAL TABLE IF NOT EXISTS examples USING fts5(
    telling, title UNINDEXED, text UNINDEXED, code UNINDEXED, source UNINDEXED, digest UNINDEXED,
    tokenize = 'porter unicode61')"""
INSERT = "INSERT INTO examples(telling, title, text, code, source, digest) VALUES (?, ?, ?, ?, ?, ?)"
FIND = "SELECT telling, title, text, code, source FROM examples WHERE examples MATCH ? ORDER BY bm25(examples) LIMIT 5"
COMMON = frozenset(
    {"and", "are", "error", "exception", "file", "for", "in", "line", "not", "of", "the", "to", "with"}
)
ENOUGH = 0.5
"""The share of a question's telling words that an example must hold to count as an answer."""


class ExampleShelf:
    def __init__(self, path: Path) -> None:
        self._path = path

    async def learn(self, examples: Iterable[Example]) -> int:
        """Keep those that are new; says how many were."""
        return await to_thread.run_sync(partial(self._learn, list(examples)))

    async def find(self, question: str) -> Example | None:
        """The best answer, or none where nothing fits well enough."""
        return await to_thread.run_sync(partial(self._find, question))

    def _learn(self, examples: list[Example]) -> int:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=5)) as connection, connection:
                connection.execute(TABLE)
                known = {digest for (digest,) in connection.execute("SELECT digest FROM examples")}
                fresh = {digest_of(one): one for one in examples if one.code.strip()}
                new = {digest: one for digest, one in fresh.items() if digest not in known}
                connection.executemany(INSERT, [row(digest, one) for digest, one in new.items()])
                return len(new)
        except (sqlite3.Error, OSError) as error:
            raise StoreFailed(
                f"examples cannot be kept in {self._path} ({error})", "make room or move it away"
            ) from error

    def _find(self, question: str) -> Example | None:
        asked = {word for word in words(question) if word not in COMMON}
        if not asked or not self._path.exists():
            return None
        try:
            with closing(
                sqlite3.connect(f"{self._path.resolve().as_uri()}?mode=ro", uri=True, timeout=5)
            ) as connection:
                rows = connection.execute(
                    FIND, (" OR ".join(f'"{word}"' for word in sorted(asked)),)
                ).fetchall()
        except sqlite3.Error as error:
            raise StoreFailed(
                f"examples in {self._path} cannot be read ({error})", "move the file away"
            ) from error
        for telling, title, text, code, source in rows:
            if len(asked & set(telling.split())) / len(asked) >= ENOUGH:
                return Example(title=title, text=text, code=code, source=source)
        return None


def row(digest: str, example: Example) -> tuple[str, ...]:
    telling = " ".join(dict.fromkeys(words(f"{example.title} {example.text} {example.code}")))
    return telling, example.title, example.text, example.code[:LONGEST_SNIPPET], example.source, digest


def digest_of(example: Example) -> str:
    return sha256(f"{example.title}\0{example.code}".encode()).hexdigest()
