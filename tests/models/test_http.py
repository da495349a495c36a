"""Answers that are too much, or no text at all: a fault like any other, in bounded memory."""

import json
import ssl
import sys
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path

import aiohttp
import anyio
import pytest
from aiohttp.client_reqrep import ConnectionKey
from models.asker import told
from models.raw_server import EVENTS, Body, raw_server

from septet.models.faults import (
    AnswerTooLarge,
    ConnectionFailed,
    Fault,
    InvalidAnswer,
    RequestRejected,
    TimedOut,
)
from septet.models.http import PIECE_BYTES, STREAM_OVERHEAD, Decompressor, HttpClient, network_fault

pytestmark = pytest.mark.anyio
MIB = 1 << 20
MOST = 300
"""MiB that the process may take at its peak, with Python and all libraries; the answers are much more, or endless."""
PATIENCE = 120
JSON = b"Content-Type: application/json\r\n"
GZIP = b"Content-Encoding: gzip\r\n"


def repeated(piece: bytes, times: int, head: bytes = b"") -> Body:
    async def body() -> AsyncIterator[bytes]:
        yield head
        for _ in range(times):
            yield piece

    return body


def bomb(head: bytes) -> Body:
    async def body() -> AsyncIterator[bytes]:
        yield packed_gigabyte(head)

    return body


@cache
def packed_gigabyte(head: bytes) -> bytes:
    """A gigabyte of blanks, packed when it is first asked for: that takes seconds, and every worker imports this."""
    packer = zlib.compressobj(level=1, wbits=31)
    packed = packer.compress(head) + b"".join(packer.compress(b" " * MIB) for _ in range(1024))
    return packed + packer.flush()


ENDLESS = 1 << 20
WORDS = b"word " * 10_000
PERSON_BRANCH = (
    b'data: {"type":"content_block_delta","delta":{"text":"%s"},"choices":[{"delta":{"content":"%s"}}]}\n\n'
)
CASES: dict[str, tuple[bytes, Body]] = {
    "a packed answer": (JSON + GZIP, bomb(b'{"choices":[],"x":"')),
    "a packed stream": (EVENTS + GZIP, bomb(b"data: ")),
    "a long answer": (JSON, repeated(b"x" * MIB, 200, b'{"choices":[],"x":"')),
    "a long line": (EVENTS, repeated(b"x" * MIB, 50, b"data: ")),
    "an endless line": (EVENTS, repeated(b"x" * MIB, ENDLESS, b"data: ")),
    "endless lines": (EVENTS, repeated(b"data: x\n" * 10_000, ENDLESS)),
    "endless signs of life": (EVENTS, repeated(b": ping\n\n" * 10_000, ENDLESS)),
    "endless words": (EVENTS, repeated(PERSON_BRANCH % (WORDS, WORDS), ENDLESS)),
}


async def asked(kind: str, *servers: tuple[bytes, Body]) -> tuple[list[str], int]:
    """What came of each question, and the most memory that all of them took."""
    async with AsyncExitStack() as stack:
        urls = [(await stack.enter_async_context(raw_server(*one))).url for one in servers]
        asker = Path(__file__).with_name("asker.py")
        with anyio.fail_after(PATIENCE):
            done = await anyio.run_process(
                [sys.executable, str(asker), kind, *urls],
                env={"PYTHONPATH": str(Path(__file__).parent.parent), "NO_PROXY": "*"},
                stderr=None,
            )
    seen = json.loads(done.stdout)
    return seen["found"], seen["peak"]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_an_answer_of_any_size_is_a_fault_and_takes_little_memory(kind: str) -> None:
    found, peak = await asked(kind, *CASES.values())

    kinds = {name: one.partition(":")[0] for name, one in zip(CASES, found, strict=True)}
    assert kinds == dict.fromkeys(CASES, "AnswerTooLarge")
    assert peak < MOST


async def test_so_is_one_that_comes_by_a_library() -> None:
    names = ("a packed answer", "a long answer", "an endless line", "endless words")
    found, peak = await asked("pydantic-ai", *(CASES[name] for name in names))

    assert [one.partition(":")[0] for one in found] == [
        "InvalidAnswer",
        "AnswerTooLarge",
        "AnswerTooLarge",
        "AnswerTooLarge",
    ]
    assert peak < MOST


NONSENSE: dict[str, tuple[bytes, Body]] = {
    "no UTF-8": (EVENTS, repeated(b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n', 1)),
    "no UTF-8 at once": (JSON, repeated(b'{"choices":[{"message":{"content":"\xff"}}]}', 1)),
    "half a character": (EVENTS, repeated(b'data: {"choices":[{"delta":{"content":"\\ud800 x"}}]}\n\n', 1)),
    "a deep nest": (EVENTS, repeated(b"data: {" + b'"x":[' + b"[" * 100_000 + b"\n\n", 1)),
    "packed badly": (EVENTS + GZIP, repeated(b"this was never packed", 1)),
    "packed strangely": (EVENTS + b"Content-Encoding: br\r\n", repeated(b"x", 1)),
}


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_an_answer_that_is_no_text_is_a_fault(kind: str) -> None:
    for name, (headers, body) in NONSENSE.items():
        async with raw_server(headers, body) as server:
            assert (await told(kind, server.url)).startswith("InvalidAnswer: "), name


SSL = ConnectionKey("host", 443, True, True, None, None, None)


@pytest.mark.parametrize(
    ("error", "fault", "cause"),
    [
        (
            aiohttp.ClientConnectorDNSError(SSL, OSError("no such name")),
            ConnectionFailed,
            "the name models.example:8443 cannot be resolved",
        ),
        (aiohttp.InvalidURL("?"), RequestRejected, "the address of the model's server is not valid"),
        (
            aiohttp.ClientConnectorCertificateError(SSL, ssl.SSLCertVerificationError()),
            RequestRejected,
            "the certificate of models.example:8443 is not trusted",
        ),
        (
            aiohttp.ClientConnectorSSLError(SSL, ssl.SSLError()),
            RequestRejected,
            "the certificate of models.example:8443 is not trusted",
        ),
        (aiohttp.SocketTimeoutError(), TimedOut, "models.example:8443 sent nothing for too long"),
        (TimeoutError(), ConnectionFailed, "no connection to models.example:8443"),
        (
            aiohttp.ClientConnectorError(SSL, OSError()),
            ConnectionFailed,
            "no connection to models.example:8443",
        ),
        (aiohttp.ClientPayloadError(), InvalidAnswer, "the answer of models.example:8443 was cut off"),
        (OSError(), ConnectionFailed, "the connection to models.example:8443 was lost"),
    ],
)
def test_what_failed_on_the_way_is_said_without_the_key_in_the_address(
    error: Exception, fault: type[Fault], cause: str
) -> None:
    found = network_fault(error, "https://user:key@models.example:8443/v1")
    assert (type(found), found.cause) == (fault, cause)
    assert network_fault(TimeoutError(), "nonsense").cause == "no connection to the server"


@pytest.mark.parametrize(
    ("headers", "most"), [(JSON, 10), (EVENTS, 10 * STREAM_OVERHEAD), (JSON + GZIP, 10), (b"", 80)]
)
async def test_an_answer_may_have_as_many_bytes_as_it_may_and_not_one_more(headers: bytes, most: int) -> None:
    def body(size: int) -> bytes:
        return zlib.compress(b"x" * size, wbits=31) if GZIP in headers else b"x" * size

    async with HttpClient(max_answer_bytes=10) as http:
        async with raw_server(headers, repeated(body(most), 1)) as server:
            assert await http.get(server.url, {}) == b"x" * most
        async with raw_server(headers, repeated(body(most + 1), 1)) as server:
            with pytest.raises(AnswerTooLarge, match=r"the answer is larger than 9\.54e-06 MiB"):
                await http.get(server.url, {})


async def test_the_beginning_of_an_error_is_read_and_no_more() -> None:
    async with raw_server(EVENTS, repeated(b"0123456789", 7)) as server, HttpClient() as http:
        async with http.post(server.url, {}, b"{}") as incoming:
            assert await incoming.read_head(25) == b"0123456789012345678901234"
        async with http.post(server.url, {}, b"{}") as incoming:
            assert await incoming.read_head(70) == b"0123456789" * 7
        async with http.post(server.url, {}, b"{}") as incoming:
            assert await incoming.read_head(71) == b"0123456789" * 7


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate"])
def test_a_compressed_answer_comes_in_pieces_whatever_it_expands_to(encoding: str) -> None:
    bits = {"gzip": 31, "x-gzip": 31, "deflate": 15}[encoding]
    content = b"0" * (PIECE_BYTES * 2 + 5)
    twice = zlib.compress(content, wbits=bits) * 2
    pieces = [*Decompressor(encoding).decompress(twice)]
    assert b"".join(pieces) == content * 2
    assert max(map(len, pieces)) == PIECE_BYTES
    half = Decompressor(encoding)
    cut = [*half.decompress(twice[:9]), *half.decompress(twice[9:])]
    assert b"".join(cut) == content * 2
