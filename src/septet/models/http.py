"""The HTTP client for model services: limits on time and size, decompression in pieces, and failures as faults."""

import math
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio

from septet.common.imports import import_uncollected
from septet.models.faults import (
    AnswerTooLarge,
    ConnectionFailed,
    Fault,
    InvalidAnswer,
    RequestRejected,
    TimedOut,
    fault_of_response,
)

PIECE_BYTES = 1 << 16
ZLIB_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""zlib's `wbits`; 47 detects the format itself."""


class Decompressor:
    def __init__(self, encoding: str) -> None:
        if encoding not in ZLIB_WINDOWS:
            raise InvalidAnswer(f"the answer is compressed with {encoding[:40]}, which was not requested")
        self._window = ZLIB_WINDOWS[encoding]
        self._inflater = zlib.decompressobj(self._window)

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Decompress in pieces of at most PIECE_BYTES: a small answer may expand to gigabytes. Raises InvalidAnswer."""
        while data:
            try:
                if piece := self._inflater.decompress(data, PIECE_BYTES):
                    yield piece
            except zlib.error as error:
                raise InvalidAnswer(f"the answer cannot be decompressed ({error})") from error
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:  # another compressed member follows
                data = self._inflater.unused_data
                self._inflater = zlib.decompressobj(self._window)


if TYPE_CHECKING:
    import aiohttp

MAX_ERROR_BYTES = 1 << 16
DRAIN_SECONDS = 0.2
MAX_ANSWER_BYTES = 8 << 20
"""The limit for text, reasoning and calls of one answer."""
STREAM_OVERHEAD = 8
"""A streamed answer may be this many times larger: each token comes in a frame of some hundred bytes."""
UNCOMPRESSED = {"Accept-Encoding": "identity"}


class HttpResponse:
    """A response whose headers have arrived: iterate over it for the decompressed pieces of its body.

    Raises AnswerTooLarge beyond `max_bytes`; a stream may have STREAM_OVERHEAD times as many.
    """

    def __init__(self, response: "aiohttp.ClientResponse", max_bytes: int | None = None) -> None:
        self._response = response
        self.content_type = response.content_type
        self.is_partial = response.status == 206
        self.max_bytes = max_bytes
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        self._decompressor = Decompressor(encoding) if encoding != "identity" else None
        self._pieces: Iterator[bytes] = iter(())
        factor = 1 if self.content_type == "application/json" else STREAM_OVERHEAD
        self._left = math.inf if max_bytes is None else max_bytes * factor

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while (piece := next(self._pieces, None)) is None:
            data = await self._response.content.readany()
            if not data:
                raise StopAsyncIteration
            self._pieces = self._decompressor.decompress(data) if self._decompressor else iter((data,))
        self._left -= len(piece)
        if self._left < 0:
            raise answer_too_large(self.max_bytes or 0)
        return piece

    async def read_head(self, size: int) -> bytes:
        """Read at most the first `size` bytes."""
        content = b""
        async for piece in self:
            content += piece
            if len(content) >= size:
                break
        return content[:size]

    async def drain(self) -> None:
        """Read what follows the last event, so that the connection can be reused."""
        if self._response.content.at_eof():
            return
        with anyio.move_on_after(DRAIN_SECONDS):
            left = MAX_ERROR_BYTES
            while left > 0 and (piece := await self._response.content.readany()):
                left -= len(piece)


def answer_too_large(limit: int) -> AnswerTooLarge:
    return AnswerTooLarge(f"the answer is larger than {limit / (1 << 20):.3g} MiB")


class HttpClient:
    """One client for all models of a process. It opens its connection pool at the first request; close it at the end.

    `read_timeout` seconds without a single byte, before the answer or inside it, are a fault, and so is an answer of
    more than `max_answer_bytes`.
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
        """Register something to close together with these connections."""
        self._closers.append(close)

    def _open_session(self) -> "aiohttp.ClientSession":
        if self._session is None:
            import_uncollected("aiohttp")
            import aiohttp

            timeout = aiohttp.ClientTimeout(
                total=None, sock_connect=self._connect_timeout, sock_read=self._read_timeout
            )
            connector = aiohttp.TCPConnector(limit=self._connections)
            # We decompress ourselves: the client would decompress everything at once.
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=timeout,
                auto_decompress=False,
                headers=UNCOMPRESSED,
            )
        return self._session

    @asynccontextmanager
    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncGenerator[HttpResponse, None]:
        """Send a JSON body and yield the response. Raises only faults."""
        session = self._open_session()
        all_headers = {"Content-Type": "application/json", **headers}
        with network_faults(url):
            proxy = proxy_for(url)
            async with session.post(
                url, data=body, headers=all_headers, allow_redirects=False, proxy=proxy
            ) as response:
                incoming = HttpResponse(response, self.max_answer_bytes)
                if response.status != 200:
                    raise await read_fault(response, incoming)
                yield incoming

    @asynccontextmanager
    async def fetch(self, url: str, start: int = 0) -> AsyncGenerator[HttpResponse, None]:
        """Download a file from byte `start` on, or from its beginning if the server cannot do that."""
        session = self._open_session()
        headers = {"Range": f"bytes={start}-"} if start else {}
        with network_faults(url):
            async with session.get(url, headers=headers, proxy=proxy_for(url)) as response:
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
            async with session.get(url, headers=dict(headers), proxy=proxy_for(url)) as response:
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


@lru_cache(maxsize=256)
def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address.

    Found once: aiohttp's own search starts two threads for each request.
    """
    host = urlsplit(url).hostname or ""
    return None if proxy_bypass(host) else getproxies().get(urlsplit(url).scheme)


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
    """Classify an exception of the HTTP client. Names the host, never the whole address, which may hold a key."""
    import aiohttp

    host = urlsplit(url).netloc.rpartition("@")[2] or "the server"
    match error:
        case aiohttp.ClientConnectorDNSError():
            return ConnectionFailed(f"the name {host} cannot be resolved")
        case aiohttp.InvalidURL():
            return RequestRejected("the address of the model's server is not valid")
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return RequestRejected(f"the certificate of {host} is not trusted")
        case aiohttp.SocketTimeoutError():
            return TimedOut(f"{host} sent nothing for too long")
        case aiohttp.ClientConnectorError() | TimeoutError():
            return ConnectionFailed(f"no connection to {host}")
        case aiohttp.ClientPayloadError():
            return InvalidAnswer(f"the answer of {host} was cut off")
        case _:
            return ConnectionFailed(f"the connection to {host} was lost")
