"""The exemplar's knowledge base looked up by words and by meaning: both rankings are merged."""

import logging
import sqlite3
from array import array
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import closing
from math import sqrt
from operator import mul

from anyio import to_thread

from septet.domain.examples import Example
from septet.errors import SeptetError
from septet.stores.examples import ExampleShelf, shelf_errors

Embed = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
TABLE = """CREATE TABLE IF NOT EXISTS meanings (
    model TEXT NOT NULL, digest TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (model, digest)) WITHOUT ROWID"""
UNKNOWN = """SELECT digest, title, text, code FROM examples
    WHERE digest NOT IN (SELECT digest FROM meanings WHERE model = ?)"""
CLOSE = 0.6
"""The cosine at which two texts count as being about the same."""
NEAREST = 5
DAMPING = 60
"""Of reciprocal rank fusion: how little it matters whether something is first or second."""


class MeaningShelf:
    """Wraps a shelf. Where the vectors' service fails, words alone decide: an example is help, not a need."""

    def __init__(self, shelf: ExampleShelf, embed: Embed, model: str) -> None:
        self._shelf = shelf
        self._embed = embed
        self._model = model

    async def learn(self, examples: Iterable[Example]) -> int:
        new = await self._shelf.learn(examples)
        await self._understood()
        return new

    async def find(self, question: str) -> Example | None:
        by_words = await self._shelf.candidates(question)
        by_meaning = await self._near(question) if question.strip() else []
        merged = fused([[digest for digest, _ in by_words], [digest for digest, _ in by_meaning]])
        known = dict([*by_words, *by_meaning])
        return known[merged[0]] if merged else None

    async def _near(self, question: str) -> list[tuple[str, Example]]:
        if not await self._understood():
            return []
        try:
            (asked,) = await self._embed([question])
        except SeptetError as error:
            return warned(error)
        return await to_thread.run_sync(self._nearest, unit(asked))

    async def _understood(self) -> bool:
        """Give every example that has none its vector, also those that were learnt before."""
        rows = await to_thread.run_sync(self._unknown)
        try:
            vectors = await self._embed([f"{title}\n{text}\n{code}" for _, title, text, code in rows])
        except SeptetError as error:
            return bool(warned(error))
        await to_thread.run_sync(self._keep, [row[0] for row in rows], vectors)
        return True

    def _unknown(self) -> list[tuple[str, str, str, str]]:
        if not self._shelf.path.exists():
            return []
        with shelf_errors(self._shelf.path), closing(sqlite3.connect(self._shelf.path, timeout=5)) as shelf:
            shelf.execute(TABLE)
            return shelf.execute(UNKNOWN, (self._model,)).fetchall()

    def _keep(self, digests: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        if not digests:
            return
        rows = [
            (self._model, digest, unit(one).tobytes()) for digest, one in zip(digests, vectors, strict=True)
        ]
        with (
            shelf_errors(self._shelf.path),
            closing(sqlite3.connect(self._shelf.path, timeout=5)) as shelf,
            shelf,
        ):
            shelf.executemany("INSERT OR REPLACE INTO meanings VALUES (?, ?, ?)", rows)

    def _nearest(self, asked: "array[float]") -> list[tuple[str, Example]]:
        if not self._shelf.path.exists():
            return []
        with shelf_errors(self._shelf.path), closing(sqlite3.connect(self._shelf.path, timeout=5)) as shelf:
            rows = shelf.execute("SELECT digest, vector FROM meanings WHERE model = ?", (self._model,))
            near = sorted(((cosine(asked, vector), digest) for digest, vector in rows), reverse=True)
        close = [digest for likeness, digest in near[:NEAREST] if likeness >= CLOSE]
        return self._shelf.named(close)


def unit(vector: Sequence[float]) -> "array[float]":
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    return array("f", [value / length for value in vector])


def cosine(one: "array[float]", kept: bytes) -> float:
    """Of two vectors of length one; nothing where they are not of the same kind."""
    other = array("f")
    other.frombytes(kept)
    return sum(map(mul, one, other)) if len(one) == len(other) else 0.0


def fused(rankings: Sequence[Sequence[str]]) -> list[str]:
    """Reciprocal rank fusion: what stands high in several rankings stands highest."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, digest in enumerate(ranking, start=1):
            scores[digest] = scores.get(digest, 0.0) + 1 / (DAMPING + place)
    return sorted(scores, key=lambda digest: -scores[digest])


def warned(error: SeptetError) -> list[tuple[str, Example]]:
    logging.getLogger("septet.stores").warning("examples are found by words only: %s", error)
    return []
