"""Unpacking what a server has compressed, a little at a time: a small answer may hide gigabytes."""

import math
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from septet.models.faults import Fault, Garbled, Oversized, Refused, Stalled, Unreachable, refusal

PIECE = 1 << 16
WAYS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""Window sizes as zlib counts them; the last finds out by itself."""


class Inflation:
    def __init__(self, encoding: str) -> None:
        if encoding not in WAYS:
            raise Garbled(f"the answer is packed in a way that was not asked for ({encoding[:40]})")
        self._way = WAYS[encoding]
        self._inflater = zlib.decompressobj(self._way)

    def unpacked(self, data: bytes) -> Iterator[bytes]:
        """The content in pieces of at most PIECE bytes. Raises Garbled where it is none."""
        while data:
            try:
                if piece := self._inflater.decompress(data, PIECE):
                    yield piece
            except zlib.error as error:
                raise Garbled(f"the answer cannot be unpacked ({error})") from error
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:  # what follows is a further part, packed by itself
                data = self._inflater.unused_data
                self._inflater = zlib.decompressobj(self._way)


if TYPE_CHECKING:
    import aiohttp

LONGEST_ERROR = 1 << 16
AFTER_THE_END = 0.2
LONGEST_ANSWER = 8 << 20
"""Bytes of text, reasoning and calls in one answer."""
STREAMED = 8
"""How many times as much a streamed answer may be on the wire: every token has a frame of some hundred bytes."""
UNPACKED = {"Accept-Encoding": "identity"}


class Incoming:
    """An answer that has begun: its content type and the pieces of its body as they come, unpacked.

    Raises Oversized beyond its bound: `longest` bytes for one that comes whole, more for a stream.
    """

    def __init__(self, response: "aiohttp.ClientResponse", longest: int | None = None) -> None:
        self._response = response
        self.kind = response.content_type
        self.resumed = response.status == 206
        self.longest = longest
        packing = response.headers.get("Content-Encoding", "identity").strip().lower()
        self._inflation = Inflation(packing) if packing != "identity" else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        factor = 1 if self.kind == "application/json" else STREAMED
        left = math.inf if self.longest is None else self.longest * factor
        async for packed in self._response.content.iter_any():
            for piece in self._inflation.unpacked(packed) if self._inflation else (packed,):
                left -= len(piece)
                if left < 0:
                    raise oversized(self.longest or 0)
                yield piece

    async def beginning(self, size: int) -> bytes:
        """Of an answer that may be anything, no more than that."""
        found = b""
        async for piece in self:
            found += piece
            if len(found) >= size:
                break
        return found[:size]

    async def finish(self) -> None:
        """Read what follows the last event, so that the connection can be used again."""
        with anyio.move_on_after(AFTER_THE_END):
            left = LONGEST_ERROR
            while left > 0 and (piece := await self._response.content.readany()):
                left -= len(piece)


def oversized(longest: int) -> Oversized:
    return Oversized(f"the answer is larger than {longest / (1 << 20):.3g} MiB")


class Wire:
    """Opens its pool at the first request. One serves every model of a process; close it at the end.

    `silent_seconds` without a single byte mean that the server has stalled, before its answer or inside it; an
    answer of more than `longest_answer` bytes is a fault.
    """

    def __init__(
        self,
        connections: int = 100,
        connect_seconds: float = 10.0,
        silent_seconds: float = 180.0,
        longest_answer: int = LONGEST_ANSWER,
    ) -> None:
        self.longest_answer = longest_answer
        self._connections = connections
        self._connect_seconds = connect_seconds
        self._silent_seconds = silent_seconds
        self._session: aiohttp.ClientSession | None = None
        self._closers: list[Callable[[], Awaitable[None]]] = []

    def at_the_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have something else closed together with these connections."""
        self._closers.append(close)

    def _opened(self) -> "aiohttp.ClientSession":
        if self._session is None:
            import aiohttp

            timeout = aiohttp.ClientTimeout(
                total=None, sock_connect=self._connect_seconds, sock_read=self._silent_seconds
            )
            connector = aiohttp.TCPConnector(limit=self._connections)
            # Unpacking is ours: the client would unpack as much at once as there is.
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, trust_env=True, auto_decompress=False, headers=UNPACKED
            )
        return self._session

    @asynccontextmanager
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[Incoming, None]:
        """Send a JSON body and read the answer. Raises faults only."""
        session = self._opened()
        sent = {"Content-Type": "application/json", **headers}
        with faults_of_the_network(url):
            async with session.post(url, data=body, headers=sent, allow_redirects=False) as response:
                incoming = Incoming(response, self.longest_answer)
                if response.status != 200:
                    raise await refused(response, incoming)
                yield incoming

    @asynccontextmanager
    async def fetch(self, url: str, start: int = 0) -> AsyncGenerator[Incoming, None]:
        """A file from byte `start` on, or from its beginning where the server cannot do that."""
        session = self._opened()
        headers = {"Range": f"bytes={start}-"} if start else {}
        with faults_of_the_network(url):
            async with session.get(url, headers=headers) as response:
                if response.status == 416 and start:
                    async with self.fetch(url) as whole:
                        yield whole
                    return
                incoming = Incoming(response)
                if response.status not in (200, 206):
                    raise await refused(response, incoming)
                yield incoming

    async def get(self, url: str, headers: Mapping[str, str]) -> bytes:
        session = self._opened()
        with faults_of_the_network(url):
            async with session.get(url, headers=dict(headers)) as response:
                incoming = Incoming(response, self.longest_answer)
                if response.status != 200:
                    raise await refused(response, incoming)
                return b"".join([piece async for piece in incoming])

    async def aclose(self) -> None:
        while self._closers:
            await self._closers.pop()()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> "Wire":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def refused(response: "aiohttp.ClientResponse", incoming: Incoming) -> Fault:
    lower = {name.lower(): value for name, value in response.headers.items()}
    return refusal(response.status, lower, await incoming.beginning(LONGEST_ERROR))


@contextmanager
def faults_of_the_network(url: str) -> Generator[None, None, None]:
    import aiohttp

    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise network_fault(error, url) from error


def network_fault(error: Exception, url: str) -> Fault:
    """The fault behind an exception of the HTTP client; names the host, never the whole address."""
    import aiohttp

    host = urlsplit(url).netloc.rpartition("@")[2] or "the server"
    match error:
        case aiohttp.ClientConnectorDNSError():
            return Unreachable(f"the name {host} cannot be resolved")
        case aiohttp.InvalidURL():
            return Refused("the address of the model's server makes no sense")
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return Refused(f"the certificate of {host} is not trusted")
        case aiohttp.SocketTimeoutError():
            return Stalled(f"{host} has been silent for too long")
        case aiohttp.ClientConnectorError() | TimeoutError():
            return Unreachable(f"no connection to {host}")
        case aiohttp.ClientPayloadError():
            return Garbled(f"the answer of {host} was cut off")
        case _:
            return Unreachable(f"the connection to {host} was lost")
