"""Texts as vectors, by an OpenAI-compatible service: for those who look things up by meaning."""

from collections.abc import Sequence

import msgspec

from septet.common.text import pluralize
from septet.common.values import Value
from septet.errors import ModelFailed
from septet.models.credentials import Credentials
from septet.models.faults import DECODE_ERRORS, Fault, error_for
from septet.models.http import HttpClient

BATCH = 64
LONGEST = 8_000
"""Characters of a text; services refuse longer ones."""


class EmbeddingItem(Value):
    embedding: tuple[float, ...]
    index: int = 0


class Embeddings(Value):
    data: tuple[EmbeddingItem, ...]


class Embedder:
    """`url` is the whole address of the embeddings."""

    def __init__(self, url: str, model: str, credentials: Credentials, http: HttpClient) -> None:
        self.model = model
        self._url = url
        self._credentials = credentials
        self._http = http

    async def __call__(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """A vector for each text. Raises ModelFailed or NoModel."""
        found: list[tuple[float, ...]] = []
        for start in range(0, len(texts), BATCH):
            found += await self._embed_batch([text[:LONGEST] for text in texts[start : start + BATCH]])
        return found

    async def _embed_batch(self, texts: list[str]) -> list[tuple[float, ...]]:
        body = msgspec.json.encode({"model": self.model, "input": texts})
        try:
            async with self._http.post(self._url, await self._credentials(), body) as incoming:
                content = b"".join([piece async for piece in incoming])
        except Fault as fault:
            raise error_for(fault, self.model) from fault
        try:
            given = msgspec.json.decode(content, type=Embeddings).data
        except DECODE_ERRORS as error:
            raise ModelFailed(f"{self.model}: the answer holds no vectors ({error})", "check it") from error
        if len(given) != len(texts):
            raise ModelFailed(
                f"{self.model}: {pluralize(len(given), 'vector')} came for {pluralize(len(texts), 'text')}",
                "check it",
            )
        return [one.embedding for one in sorted(given, key=lambda one: one.index)]
