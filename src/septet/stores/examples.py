"""The exemplar's knowledge base: SQLite's full-text index, ranked by bm25, with identifiers split into words."""

import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager
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
COLUMNS = "telling, title, text, code, source, digest"
FIND = f"SELECT {COLUMNS} FROM examples WHERE examples MATCH ? ORDER BY bm25(examples) LIMIT 5"  # noqa: S608  # fixed text
NAMED = f"SELECT {COLUMNS} FROM examples WHERE digest = ?"  # noqa: S608  # fixed text
COMMON = frozenset(
    {"and", "are", "error", "exception", "file", "for", "in", "line", "not", "of", "the", "to", "with"}
)
ENOUGH = 0.5
"""The share of a question's telling words that an example must hold to count as an answer."""


class ExampleShelf:
    def __init__(self, path: Path) -> None:
        self.path = path

    async def learn(self, examples: Iterable[Example]) -> int:
        """Keep those that are new; says how many were."""
        return await to_thread.run_sync(partial(self._learn, list(examples)))

    async def find(self, question: str) -> Example | None:
        """The best answer, or none where nothing fits well enough."""
        found = await self.candidates(question)
        return found[0][1] if found else None

    async def candidates(self, question: str) -> list[tuple[str, Example]]:
        """Those that fit well enough by their words, with their digests, the best first."""
        return await to_thread.run_sync(partial(self._candidates, question))

    def _learn(self, examples: list[Example]) -> int:
        with shelf_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=5)) as connection, connection:
                connection.execute(TABLE)
                known = {digest for (digest,) in connection.execute("SELECT digest FROM examples")}
                fresh = {digest_of(one): one for one in examples if one.code.strip()}
                new = {digest: one for digest, one in fresh.items() if digest not in known}
                connection.executemany(INSERT, [row(digest, one) for digest, one in new.items()])
                return len(new)

    def _candidates(self, question: str) -> list[tuple[str, Example]]:
        asked = {word for word in words(question) if word not in COMMON}
        if not asked or not self.path.exists():
            return []
        with shelf_errors(self.path), closing(self._reader()) as connection:
            rows = connection.execute(FIND, (" OR ".join(f'"{word}"' for word in sorted(asked)),)).fetchall()
        fitting = [row for row in rows if len(asked & set(row[0].split())) / len(asked) >= ENOUGH]
        return [(row[5], example_in(row)) for row in fitting]

    def named(self, digests: Sequence[str]) -> list[tuple[str, Example]]:
        """The examples with these digests, in that order."""
        with shelf_errors(self.path), closing(self._reader()) as connection:
            rows = [connection.execute(NAMED, (digest,)).fetchone() for digest in digests]
        return [(row[5], example_in(row)) for row in rows if row]

    def _reader(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True, timeout=5)


@contextmanager
def shelf_errors(path: Path) -> Generator[None]:
    """Troubles of the database and the disk as cause and remedy."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreFailed(
            f"examples in {path} cannot be used ({error})", "make room or move it away"
        ) from error


def example_in(row: Sequence[str]) -> Example:
    _, title, text, code, source, _ = row
    return Example(title=title, text=text, code=code, source=source)


def row(digest: str, example: Example) -> tuple[str, ...]:
    telling = " ".join(dict.fromkeys(words(f"{example.title} {example.text} {example.code}")))
    return telling, example.title, example.text, example.code[:LONGEST_SNIPPET], example.source, digest


def digest_of(example: Example) -> str:
    return sha256(f"{example.title}\0{example.code}".encode()).hexdigest()
