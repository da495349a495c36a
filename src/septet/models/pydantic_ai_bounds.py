"""Answers that come by a provider's own library, within the same bounds as all others."""

import inspect
from collections.abc import AsyncIterator, Callable

import httpx2
from pydantic_ai.models import create_async_httpx2_client
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

from septet.models.faults import Garbled
from septet.models.wire import STREAMED, UNPACKED, Wire, oversized

OLDER = ("cohere", "github", "groq")
"""Providers whose libraries take no client of the newer kind: what they answer is bounded when it has been read."""


def bounded_provider(wire: Wire) -> Callable[[str], Provider[object]]:
    """Makes providers whose client reads no more of an answer than it may be; closed with the wire."""

    def make(name: str) -> Provider[object]:
        if name.startswith("gateway/") or name in OLDER:
            return infer_provider(name)
        kind = infer_provider_class(name)
        if "http_client" not in inspect.signature(kind).parameters:
            return infer_provider(name)
        client = bounded_client(wire)
        wire.at_the_end(client.aclose)
        return kind(http_client=client)  # pyright: ignore[reportCallIssue]  # its signature was asked

    return make


def bounded_client(wire: Wire) -> httpx2.AsyncClient:
    client = create_async_httpx2_client()
    client.headers.update(UNPACKED)

    async def bound(response: httpx2.Response) -> None:
        packing = response.headers.get("content-encoding", "identity").strip().lower()
        if packing != "identity":
            raise Garbled(f"the answer is packed, which was not asked for ({packing[:40]})")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Bounded(response.stream, wire.longest_answer)

    client.event_hooks = {**client.event_hooks, "response": [bound]}
    return client


class Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, longest: int) -> None:
        self._stream = stream
        self._longest = longest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._longest * STREAMED
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise oversized(self._longest)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
