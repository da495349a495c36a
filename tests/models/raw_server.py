"""A server over real sockets that answers with whatever bytes a test says: for answers that no honest server gives."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

Body = Callable[[], AsyncIterator[bytes]]
EVENTS = b"Content-Type: text/event-stream\r\n"


class RawServer:
    def __init__(self, headers: bytes, body: Body) -> None:
        self.url = ""
        self.asked = 0
        self.sent = 0
        self._headers = headers
        self._body = body

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            await read_request(stream)
            self.asked += 1
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # who asked has gone
                await stream.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + self._headers + b"\r\n")
                async for piece in self._body():
                    await stream.send(piece)
                    self.sent += len(piece)


async def read_request(stream: SocketStream) -> None:
    buffered = BufferedByteReceiveStream(stream)
    head = (await buffered.receive_until(b"\r\n\r\n", 1 << 16)).lower()
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
    await buffered.receive_exactly(int(length or b"0"))


@asynccontextmanager
async def raw_server(headers: bytes, body: Body) -> AsyncGenerator[RawServer]:
    server = RawServer(headers, body)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(SocketAttribute.local_port)  # a socket's attribute, no Django
    server.url = f"http://127.0.0.1:{port}/v1"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


async def nothing() -> AsyncIterator[bytes]:
    """Silence for ever."""
    await anyio.sleep_forever()
    yield b""


async def drops() -> AsyncIterator[bytes]:
    """A word now and then, and never the last one."""
    while True:
        yield b'data: {"choices":[{"delta":{"content":"wait "}}]}\n\n'
        await anyio.sleep(0.02)
