"""The exemplar's knowledge base: examples found by words (SQLite's full-text index, ranked by bm25, with identifiers
split into words) and, if there is an embedding model, by meaning too.
"""

import logging
import sqlite3
from array import array
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from functools import partial
from hashlib import sha256
from math import sqrt
from operator import mul
from pathlib import Path

from anyio import to_thread

from septet.domain.plans import MAX_SNIPPET_LENGTH, Example, words
from septet.errors import SeptetError, StoreFailed

TABLE = """CREATE VIRTUAL TABLE IF NOT EXISTS examples USING fts5(
    telling, title UNINDEXED, text UNINDEXED, code UNINDEXED, source UNINDEXED, digest UNINDEXED,
    tokenize = 'porter unicode61')"""
INSERT = "INSERT INTO examples(telling, title, text, code, source, digest) VALUES (?, ?, ?, ?, ?, ?)"
COLUMNS = "telling, title, text, code, source, digest"
FIND = f"SELECT {COLUMNS} FROM examples WHERE examples MATCH ? ORDER BY bm25(examples) LIMIT 5"  # noqa: S608  # fixed text
BY_DIGEST = f"SELECT {COLUMNS} FROM examples WHERE digest = ?"  # noqa: S608  # fixed text
STOP_WORDS = frozenset(
    {"and", "are", "error", "exception", "file", "for", "in", "line", "not", "of", "the", "to", "with"}
)
MIN_OVERLAP = 0.5
"""The share of a question's keywords that an example must contain to count as an answer."""


class FullTextExamples:
    def __init__(self, path: Path) -> None:
        self.path = path

    async def learn(self, examples: Iterable[Example]) -> int:
        """Store the new examples; returns their number."""
        return await to_thread.run_sync(partial(self._learn, list(examples)))

    async def find(self, question: str) -> Example | None:
        """The best match; None if nothing matches well enough."""
        matches = await self.candidates(question)
        return matches[0][1] if matches else None

    async def candidates(self, question: str) -> list[tuple[str, Example]]:
        """The examples that match well enough by words, with their digests, best first."""
        return await to_thread.run_sync(partial(self._candidates, question))

    def _learn(self, examples: list[Example]) -> int:
        with self.database() as database, database:
            database.execute(TABLE)
            known = {digest for (digest,) in database.execute("SELECT digest FROM examples")}
            given = {example_digest(example): example for example in examples if example.code.strip()}
            new = {digest: example for digest, example in given.items() if digest not in known}
            database.executemany(INSERT, [example_row(digest, example) for digest, example in new.items()])
            return len(new)

    def _candidates(self, question: str) -> list[tuple[str, Example]]:
        keywords = {word for word in words(question) if word not in STOP_WORDS}
        if not keywords or not self.path.exists():
            return []
        with self.database(writable=False) as database:
            rows = database.execute(FIND, (" OR ".join(f'"{word}"' for word in sorted(keywords)),)).fetchall()
        matching = [row for row in rows if len(keywords & set(row[0].split())) / len(keywords) >= MIN_OVERLAP]
        return [(row[5], example_in(row)) for row in matching]

    def by_digest(self, digests: Sequence[str]) -> list[tuple[str, Example]]:
        """The examples with these digests, in that order."""
        with self.database(writable=False) as database:
            rows = [database.execute(BY_DIGEST, (digest,)).fetchone() for digest in digests]
        return [(row[5], example_in(row)) for row in rows if row]

    @contextmanager
    def database(self, writable: bool = True) -> Generator[sqlite3.Connection]:
        """A connection to the file; raises StoreFailed for errors of the database and the disk."""
        try:
            if writable:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            address = f"{self.path.resolve().as_uri()}?mode={'rwc' if writable else 'ro'}"
            with closing(sqlite3.connect(address, uri=True, timeout=5)) as connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise StoreFailed(
                f"examples in {self.path} cannot be used ({error})",
                "check the disk and the file's permissions, or move the file away",
            ) from error


def example_in(row: Sequence[str]) -> Example:
    _, title, text, code, source, _ = row
    return Example(title=title, text=text, code=code, source=source)


def example_row(digest: str, example: Example) -> tuple[str, ...]:
    keywords = " ".join(dict.fromkeys(words(f"{example.title} {example.text} {example.code}")))
    return keywords, example.title, example.text, example.code[:MAX_SNIPPET_LENGTH], example.source, digest


def example_digest(example: Example) -> str:
    return sha256(f"{example.title}\0{example.code}".encode()).hexdigest()


Embed = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
VECTOR_TABLE = """CREATE TABLE IF NOT EXISTS meanings (
    model TEXT NOT NULL, digest TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (model, digest)) WITHOUT ROWID"""
WITHOUT_VECTOR = """SELECT digest, title, text, code FROM examples
    WHERE digest NOT IN (SELECT digest FROM meanings WHERE model = ?)"""
MIN_SIMILARITY = 0.6
"""The cosine from which two texts count as similar."""
MAX_SIMILAR = 5
RANK_CONSTANT = 60
"""The constant of reciprocal rank fusion: the larger, the less the first ranks matter."""


class HybridExamples:
    """Search by words and embeddings. If the embedding service fails, words alone decide: examples are optional."""

    def __init__(self, by_words: FullTextExamples, embed: Embed, model: str) -> None:
        self._by_words = by_words
        self._embed = embed
        self._model = model

    async def learn(self, examples: Iterable[Example]) -> int:
        new = await self._by_words.learn(examples)
        await self._embed_new()
        return new

    async def find(self, question: str) -> Example | None:
        by_words = await self._by_words.candidates(question)
        by_meaning = await self._similar(question) if question.strip() else []
        merged = fuse_rankings([[digest for digest, _ in by_words], [digest for digest, _ in by_meaning]])
        known = dict([*by_words, *by_meaning])
        return known[merged[0]] if merged else None

    async def _similar(self, question: str) -> list[tuple[str, Example]]:
        if not await self._embed_new():
            return []
        try:
            (vector,) = await self._embed([question])
        except SeptetError as error:
            return log_embedding_failure(error)
        return await to_thread.run_sync(self._nearest, normalize(vector))

    async def _embed_new(self) -> bool:
        """Embed all examples without a vector; returns whether that worked."""
        rows = await to_thread.run_sync(self._without_vector)
        try:
            vectors = await self._embed([f"{title}\n{text}\n{code}" for _, title, text, code in rows])
        except SeptetError as error:
            return bool(log_embedding_failure(error))
        await to_thread.run_sync(self._save, [row[0] for row in rows], vectors)
        return True

    def _without_vector(self) -> list[tuple[str, str, str, str]]:
        if not self._by_words.path.exists():
            return []
        with self._by_words.database() as database:
            database.execute(VECTOR_TABLE)
            return database.execute(WITHOUT_VECTOR, (self._model,)).fetchall()

    def _save(self, digests: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        if not digests:
            return
        rows = [
            (self._model, digest, normalize(vector).tobytes())
            for digest, vector in zip(digests, vectors, strict=True)
        ]
        with self._by_words.database() as database, database:
            database.executemany("INSERT OR REPLACE INTO meanings VALUES (?, ?, ?)", rows)

    def _nearest(self, question: "array[float]") -> list[tuple[str, Example]]:
        if not self._by_words.path.exists():
            return []
        with self._by_words.database() as database:
            rows = database.execute("SELECT digest, vector FROM meanings WHERE model = ?", (self._model,))
            ranked = sorted(((cosine(question, vector), digest) for digest, vector in rows), reverse=True)
        digests = [digest for similarity, digest in ranked[:MAX_SIMILAR] if similarity >= MIN_SIMILARITY]
        return self._by_words.by_digest(digests)


def normalize(vector: Sequence[float]) -> "array[float]":
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    return array("f", [value / length for value in vector])


def cosine(vector: "array[float]", stored: bytes) -> float:
    """The cosine of two unit vectors; 0 if their dimensions differ."""
    other = array("f")
    other.frombytes(stored)
    return sum(map(mul, vector, other)) if len(vector) == len(other) else 0.0


def fuse_rankings(rankings: Sequence[Sequence[str]]) -> list[str]:
    """Reciprocal rank fusion: what ranks high in several rankings ranks highest."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, digest in enumerate(ranking, start=1):
            scores[digest] = scores.get(digest, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores, key=lambda digest: -scores[digest])


def log_embedding_failure(error: SeptetError) -> list[tuple[str, Example]]:
    logging.getLogger("septet.stores").warning("examples are found by words only: %s", error)
    return []
