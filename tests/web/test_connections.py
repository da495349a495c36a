"""Clients that keep no rule: half a request, frames that are none, hosts that are not ours."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from web.serving import PATIENCE, Web

from septet.web.server import ConnectionLimits, SignalFreeServer, uvicorn_config

TEXT, BINARY, CLOSE, PING, RESERVED, MORE = 1, 2, 8, 9, 3, 0
MASK = b"\x01\x02\x03\x04"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    folder = tmp_path_factory.mktemp("rude")
    served = Web(folder / "home", complaints=folder / "stderr.txt")
    yield served
    served.stop()


def complaints(web: Web) -> str:
    assert web.complaints is not None
    return web.complaints.read_text()


async def greet(request: Request) -> Response:
    return PlainTextResponse(f"{len(await request.body())} bytes\n")


@pytest.fixture(scope="module")
def impatient() -> Iterator[int]:
    """The port of a server that waits a moment for a request, and has room for few."""
    app = Starlette(routes=[Route("/", greet, methods=["GET", "POST"])])
    server = SignalFreeServer(uvicorn_config(app, ConnectionLimits(request_seconds=0.5, connections=20)))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(PATIENCE)


def dialled(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def heard(client: socket.socket) -> bytes:
    """All that the server says until it closes."""
    said = b""
    with suppress(ConnectionResetError):
        while piece := client.recv(1 << 16):
            said += piece
    return said


@pytest.mark.parametrize(
    "host", ["[::1].evil", "[::1]evil", "[::1", "127.0.0.1:evil", "localhost:80.evil", "[]", "::1"]
)
def test_a_host_that_only_begins_like_ours_is_not_served(web: Web, host: str) -> None:
    assert web.ask("GET", "/", headers={"Host": host}).status == 421


@pytest.mark.parametrize("host", ["[::1]", "[::1]:80", "127.0.0.1", "localhost:1"])
def test_our_own_hosts_are_served(web: Web, host: str) -> None:
    assert web.ask("GET", "/", headers={"Host": host}).status == 401


HELLO = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALVES = {
    "nothing": (b"", 0),
    "half a line": (b"GET / HT", 0),
    "half a head": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", 0),
    "half a body": (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", 0),
    "half of the next": (HELLO + b"GET / HT", 1),
}


@pytest.mark.parametrize(("half", "answers"), HALVES.values(), ids=HALVES)
def test_half_a_request_is_not_waited_for_for_ever(impatient: int, half: bytes, answers: int) -> None:
    with dialled(impatient) as client:
        client.sendall(half)
        assert heard(client).count(b" 200 OK") == answers


def test_who_comes_when_there_is_no_room_is_turned_away_and_later_there_is_room(impatient: int) -> None:
    clients = [dialled(impatient) for _ in range(60)]
    for client in clients:
        heard(client)
        client.close()
    with dialled(impatient) as client:
        client.sendall(HELLO)
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_a_request_that_breaks_off_prints_nothing(web: Web) -> None:
    form = f"Cookie: {web.cookie}\r\nOrigin: {web.origin}\r\nHost: 127.0.0.1:{web.port}\r\nContent-Length: 100\r\n"
    before = len(complaints(web))
    with dialled(web.port) as client:
        client.sendall(f"POST /api/chats HTTP/1.1\r\n{form}\r\n{{".encode())
        client.shutdown(socket.SHUT_WR)
        heard(client)
    assert web.get("/api/chats").status == 200
    assert complaints(web)[before:] == ""


def frame(opcode: int, content: bytes, fin: bool = True, masked: bool = True, reserved: int = 0) -> bytes:
    head = bytes([(fin << 7) | reserved | opcode])
    size = len(content)
    length = (
        bytes([(masked << 7) | size])
        if size < 126
        else bytes([(masked << 7) | 126]) + struct.pack("!H", size)
    )
    if not masked:
        return head + length + content
    return head + length + MASK + bytes(one ^ MASK[at % 4] for at, one in enumerate(content))


FRAMES: dict[str, tuple[bytes, int]] = {
    "no UTF-8": (frame(TEXT, b"\xff\xfe"), 1007),
    "half a character": (frame(TEXT, b"\xe2\x82"), 1007),
    "no UTF-8 in two": (frame(TEXT, b"\xe2", fin=False) + frame(MORE, b"\xff"), 1007),
    "an unknown kind": (frame(RESERVED, b""), 1002),
    "a reserved bit": (frame(TEXT, b"x", reserved=0x40), 1002),
    "not masked": (frame(TEXT, b"x", masked=False), 1002),
    "the end of nothing": (frame(MORE, b"x"), 1002),
    "a long ping": (frame(PING, b"x" * 200), 1002),
    "half a ping": (frame(PING, b"x", fin=False), 1002),
    "a close that says no code": (frame(CLOSE, b"x"), 1002),
    "too much": (bytes([0x82, 0xFF]) + struct.pack("!Q", 1 << 40) + MASK, 1009),
}


@pytest.mark.parametrize(("sent", "code"), FRAMES.values(), ids=FRAMES)
def test_a_frame_that_is_none_closes_the_socket_by_the_protocol_and_quietly(
    web: Web, sent: bytes, code: int
) -> None:
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    hello = f"GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\nOrigin: {web.origin}\r\nCookie: {web.cookie}\r\n"
    before = len(complaints(web))
    with dialled(web.port) as client:
        client.sendall(f"{hello}Connection: Upgrade\r\nUpgrade: websocket\r\n{key}\r\n".encode())
        with client.makefile("rb") as answer:
            while answer.readline().strip():
                pass
            client.sendall(sent)
            assert closing_code(answer.read()) == code

    assert complaints(web)[before:] == ""


def closing_code(heard: bytes) -> int:
    """Of the first closing frame among those that a server sends, which are not masked."""
    while heard:
        opcode, size = heard[0] & 15, heard[1]
        start = 4 if size == 126 else 10 if size == 127 else 2
        size = int.from_bytes(heard[2:start]) if start > 2 else size
        if opcode == CLOSE:
            return int.from_bytes(heard[start : start + 2])
        heard = heard[start + size :]
    return 0
