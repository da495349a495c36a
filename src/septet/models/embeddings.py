"""Embeddings of texts by an OpenAI-compatible service, for semantic search."""

from collections.abc import Sequence

import msgspec

from septet.common.text import pluralize
from septet.common.values import Value
from septet.errors import ModelFailed
from septet.models.credentials import Credentials
from septet.models.faults import DECODE_ERRORS, Fault, error_for
from septet.models.http import HttpClient

BATCH_SIZE = 64
MAX_TEXT_LENGTH = 8_000
"""In characters; services refuse longer texts."""


class EmbeddingItem(Value):
    embedding: tuple[float, ...]
    index: int = 0


class Embeddings(Value):
    data: tuple[EmbeddingItem, ...]


class Embedder:
    """`url` is the full address of the embeddings endpoint."""

    def __init__(self, url: str, model: str, credentials: Credentials, http: HttpClient) -> None:
        self.model = model
        self._url = url
        self._credentials = credentials
        self._http = http

    async def __call__(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """Return a vector for each text. Raises ModelFailed or NoModel."""
        vectors: list[tuple[float, ...]] = []
        for start in range(0, len(texts), BATCH_SIZE):
            vectors += await self._embed_batch(
                [text[:MAX_TEXT_LENGTH] for text in texts[start : start + BATCH_SIZE]]
            )
        return vectors

    async def _embed_batch(self, texts: list[str]) -> list[tuple[float, ...]]:
        body = msgspec.json.encode({"model": self.model, "input": texts})
        try:
            async with self._http.post(self._url, await self._credentials(), body) as incoming:
                content = b"".join([piece async for piece in incoming])
        except Fault as fault:
            raise error_for(fault, self.model) from fault
        try:
            items = msgspec.json.decode(content, type=Embeddings).data
        except DECODE_ERRORS as error:
            raise ModelFailed(
                f"{self.model}: the answer has no vectors ({error})", "check the model's name"
            ) from error
        if len(items) != len(texts):
            raise ModelFailed(
                f"{self.model}: {pluralize(len(items), 'vector')} came for {pluralize(len(texts), 'text')}",
                "check the model's name",
            )
        return [item.embedding for item in sorted(items, key=lambda item: item.index)]
