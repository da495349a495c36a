"""Unpacking what a server has compressed, a little at a time: a small answer may hide gigabytes."""

import math
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from septet.models.faults import (
    AnswerTooLarge,
    ConnectionFailed,
    Fault,
    InvalidAnswer,
    RequestRejected,
    TimedOut,
    fault_of_response,
)

PIECE = 1 << 16
ZLIB_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""Window sizes as zlib counts them; the last finds out by itself."""


class Decompressor:
    def __init__(self, encoding: str) -> None:
        if encoding not in ZLIB_WINDOWS:
            raise InvalidAnswer(f"the answer is packed in a way that was not asked for ({encoding[:40]})")
        self._window = ZLIB_WINDOWS[encoding]
        self._inflater = zlib.decompressobj(self._window)

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """The content in pieces of at most PIECE bytes. Raises Garbled where it is none."""
        while data:
            try:
                if piece := self._inflater.decompress(data, PIECE):
                    yield piece
            except zlib.error as error:
                raise InvalidAnswer(f"the answer cannot be unpacked ({error})") from error
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:  # what follows is a further part, packed by itself
                data = self._inflater.unused_data
                self._inflater = zlib.decompressobj(self._window)


if TYPE_CHECKING:
    import aiohttp

MAX_ERROR_BYTES = 1 << 16
DRAIN_SECONDS = 0.2
MAX_ANSWER_BYTES = 8 << 20
"""Bytes of text, reasoning and calls in one answer."""
STREAM_OVERHEAD = 8
"""How many times as much a streamed answer may be on the wire: every token has a frame of some hundred bytes."""
UNCOMPRESSED = {"Accept-Encoding": "identity"}


class HttpResponse:
    """An answer that has begun: its content type and the pieces of its body as they come, unpacked.

    Raises Oversized beyond its bound: `longest` bytes for one that comes whole, more for a stream.
    """

    def __init__(self, response: "aiohttp.ClientResponse", max_bytes: int | None = None) -> None:
        self._response = response
        self.content_type = response.content_type
        self.is_partial = response.status == 206
        self.max_bytes = max_bytes
        packing = response.headers.get("Content-Encoding", "identity").strip().lower()
        self._decompressor = Decompressor(packing) if packing != "identity" else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        factor = 1 if self.content_type == "application/json" else STREAM_OVERHEAD
        left = math.inf if self.max_bytes is None else self.max_bytes * factor
        async for packed in self._response.content.iter_any():
            for piece in self._decompressor.decompress(packed) if self._decompressor else (packed,):
                left -= len(piece)
                if left < 0:
                    raise answer_too_large(self.max_bytes or 0)
                yield piece

    async def read_head(self, size: int) -> bytes:
        """Of an answer that may be anything, no more than that."""
        found = b""
        async for piece in self:
            found += piece
            if len(found) >= size:
                break
        return found[:size]

    async def drain(self) -> None:
        """Read what follows the last event, so that the connection can be used again."""
        with anyio.move_on_after(DRAIN_SECONDS):
            left = MAX_ERROR_BYTES
            while left > 0 and (piece := await self._response.content.readany()):
                left -= len(piece)


def answer_too_large(longest: int) -> AnswerTooLarge:
    return AnswerTooLarge(f"the answer is larger than {longest / (1 << 20):.3g} MiB")


class HttpClient:
    """Opens its pool at the first request. One serves every model of a process; close it at the end.

    `silent_seconds` without a single byte mean that the server has stalled, before its answer or inside it; an
    answer of more than `longest_answer` bytes is a fault.
    """

    def __init__(
        self,
        connections: int = 100,
        connect_timeout: float = 10.0,
        read_timeout: float = 180.0,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self.max_answer_bytes = max_answer_bytes
        self._connections = connections
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._session: aiohttp.ClientSession | None = None
        self._closers: list[Callable[[], Awaitable[None]]] = []

    def on_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have something else closed together with these connections."""
        self._closers.append(close)

    def _open_session(self) -> "aiohttp.ClientSession":
        if self._session is None:
            import aiohttp

            timeout = aiohttp.ClientTimeout(
                total=None, sock_connect=self._connect_timeout, sock_read=self._read_timeout
            )
            connector = aiohttp.TCPConnector(limit=self._connections)
            # Unpacking is ours: the client would unpack as much at once as there is.
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=timeout,
                trust_env=True,
                auto_decompress=False,
                headers=UNCOMPRESSED,
            )
        return self._session

    @asynccontextmanager
    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncGenerator[HttpResponse, None]:
        """Send a JSON body and read the answer. Raises faults only."""
        session = self._open_session()
        sent = {"Content-Type": "application/json", **headers}
        with network_faults(url):
            async with session.post(url, data=body, headers=sent, allow_redirects=False) as response:
                incoming = HttpResponse(response, self.max_answer_bytes)
                if response.status != 200:
                    raise await read_fault(response, incoming)
                yield incoming

    @asynccontextmanager
    async def fetch(self, url: str, start: int = 0) -> AsyncGenerator[HttpResponse, None]:
        """A file from byte `start` on, or from its beginning where the server cannot do that."""
        session = self._open_session()
        headers = {"Range": f"bytes={start}-"} if start else {}
        with network_faults(url):
            async with session.get(url, headers=headers) as response:
                if response.status == 416 and start:
                    async with self.fetch(url) as whole:
                        yield whole
                    return
                incoming = HttpResponse(response)
                if response.status not in (200, 206):
                    raise await read_fault(response, incoming)
                yield incoming

    async def get(self, url: str, headers: Mapping[str, str]) -> bytes:
        session = self._open_session()
        with network_faults(url):
            async with session.get(url, headers=dict(headers)) as response:
                incoming = HttpResponse(response, self.max_answer_bytes)
                if response.status != 200:
                    raise await read_fault(response, incoming)
                return b"".join([piece async for piece in incoming])

    async def aclose(self) -> None:
        while self._closers:
            await self._closers.pop()()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> "HttpClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def read_fault(response: "aiohttp.ClientResponse", incoming: HttpResponse) -> Fault:
    lower = {name.lower(): value for name, value in response.headers.items()}
    return fault_of_response(response.status, lower, await incoming.read_head(MAX_ERROR_BYTES))


@contextmanager
def network_faults(url: str) -> Generator[None, None, None]:
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
            return ConnectionFailed(f"the name {host} cannot be resolved")
        case aiohttp.InvalidURL():
            return RequestRejected("the address of the model's server makes no sense")
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return RequestRejected(f"the certificate of {host} is not trusted")
        case aiohttp.SocketTimeoutError():
            return TimedOut(f"{host} has been silent for too long")
        case aiohttp.ClientConnectorError() | TimeoutError():
            return ConnectionFailed(f"no connection to {host}")
        case aiohttp.ClientPayloadError():
            return InvalidAnswer(f"the answer of {host} was cut off")
        case _:
            return ConnectionFailed(f"the connection to {host} was lost")
