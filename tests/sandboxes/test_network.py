"""The proxy's allow-list: named hosts pass, everything else is refused."""

import socket
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.sandboxes.network import Target, parse_target, proxy

pytestmark = pytest.mark.anyio


@given(st.binary())
def test_any_head_is_a_target_or_none(head: bytes) -> None:
    assert isinstance(parse_target(head), Target | None)


@pytest.mark.parametrize(
    ("head", "host", "port", "first"),
    [
        (b"CONNECT PyPI.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", "pypi.org", 443, b""),
        (
            b"GET http://a.b:8080/p?q=1 HTTP/1.1\r\nHost: a.b\r\n\r\n",
            "a.b",
            8080,
            b"GET /p?q=1 HTTP/1.1\r\nHost: a.b\r\n\r\n",
        ),
    ],
)
def test_both_ways_of_asking_are_read(head: bytes, host: str, port: int, first: bytes) -> None:
    assert parse_target(head) == Target(host, port, first)


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("pypi.org", 443, True),
        ("pypi.org", 22, False),
        ("evil-pypi.org", 443, False),
        ("pypi.org.evil.com", 443, False),
        ("127.0.0.1", 8000, True),
        ("127.0.0.1", 8001, False),
    ],
)
def test_a_host_is_allowed_by_its_whole_name_and_port(host: str, port: int, allowed: bool) -> None:
    assert Target(host, port, b"").is_allowed(frozenset({"pypi.org", "127.0.0.1:8000"})) is allowed


async def answer(place: Path, request: bytes) -> bytes:
    async with await anyio.connect_unix(place) as wire:
        await wire.send(request)
        return await wire.receive()


async def test_what_is_not_named_is_refused_and_so_is_this_machine_by_another_name(tmp_path: Path) -> None:
    place = tmp_path / "p"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        async with proxy(place, frozenset({"localhost", f"127.0.0.1:{port}"})):
            assert b" 403 " in await answer(place, b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
            assert b" 403 " in await answer(place, b"CONNECT localhost:443 HTTP/1.1\r\n\r\n")
            assert b" 403 " in await answer(place, b"nonsense\r\n\r\n")
            assert b" 200 " in await answer(place, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
