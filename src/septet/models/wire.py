"""HTTP to a model's service: a warm, bounded pool of connections whose failures are faults."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from septet.models.faults import Fault, Garbled, Refused, Stalled, Unreachable
from septet.models.refusals import refusal

if TYPE_CHECKING:
    import aiohttp

LONGEST_ERROR = 1 << 16
AFTER_THE_END = 0.2


class Incoming:
    """An answer that has begun: its content type and the pieces of its body as they come."""

    def __init__(self, response: "aiohttp.ClientResponse") -> None:
        self._response = response
        self.kind = response.content_type
        self.resumed = response.status == 206

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.content.iter_any()

    async def finish(self) -> None:
        """Read what follows the last event, so that the connection can be used again."""
        with anyio.move_on_after(AFTER_THE_END):
            await self._response.content.read()


class Wire:
    """Opens its pool at the first request. One serves every model of a process; close it at the end.

    `silent_seconds` without a single byte mean that the server has stalled, before its answer or inside it.
    """

    def __init__(
        self, connections: int = 100, connect_seconds: float = 10.0, silent_seconds: float = 180.0
    ) -> None:
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
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=True)
        return self._session

    @asynccontextmanager
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[Incoming, None]:
        """Send a JSON body and read the answer. Raises faults only."""
        session = self._opened()
        sent = {"Content-Type": "application/json", **headers}
        with faults_of_the_network(url):
            async with session.post(url, data=body, headers=sent, allow_redirects=False) as response:
                if response.status != 200:
                    error = await response.content.read(LONGEST_ERROR)
                    lower = {name.lower(): value for name, value in response.headers.items()}
                    raise refusal(response.status, lower, error)
                yield Incoming(response)

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
                if response.status not in (200, 206):
                    error = await response.content.read(LONGEST_ERROR)
                    raise refusal(response.status, {}, error)
                yield Incoming(response)

    async def get(self, url: str, headers: Mapping[str, str]) -> bytes:
        session = self._opened()
        with faults_of_the_network(url):
            async with session.get(url, headers=dict(headers)) as response:
                body = await response.read()
                if response.status != 200:
                    lower = {name.lower(): value for name, value in response.headers.items()}
                    raise refusal(response.status, lower, body)
                return body

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
