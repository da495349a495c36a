"""What a server sends, read like the client's own parser reads it, however it was cut on the way."""

from collections.abc import Awaitable

import pytest
from nats.errors import ProtocolError
from nats.protocol.parser import Parser

from septet.cluster.parser import MessageParser

pytestmark = pytest.mark.anyio
Delivered = tuple[int, bytes, bytes, bytes, bytes]
HEADERS = b"NATS/1.0\r\nSeptet-Id: a-1\r\n\r\n"
SENT = b"".join(
    (
        b"MSG told 1 4\r\nbody\r\n",
        b"+OK\r\n",
        b"MSG told 2 answer.here 0\r\n\r\n",
        b"HMSG told.again 3 %d %d\r\n%sline\r\nMSG x 1 2\r\n" % (len(HEADERS), len(HEADERS) + 15, HEADERS),
        b"HMSG told 14 answer.here %d %d\r\n%s\r\n" % (len(HEADERS), len(HEADERS), HEADERS),
        b"MSG  told\t1   2\r\nok\r\n",
    )
)


class Client:
    """Where the client's own parser delivers messages."""

    def __init__(self) -> None:
        self.delivered: list[Delivered] = []

    async def _process_msg(
        self, number: int, subject: bytes, reply: bytes, body: bytes, headers: bytes
    ) -> None:
        self.delivered.append((number, subject, reply, headers or b"", body))


async def expected(sent: bytes) -> list[Delivered]:
    client = Client()
    await Parser(client).parse(sent)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
    return client.delivered


def collecting() -> tuple[MessageParser, list[Delivered]]:
    delivered: list[Delivered] = []

    def deliver(*message: *Delivered) -> None:
        delivered.append(message)

    return MessageParser(None, deliver), delivered


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 64, 1000])
async def test_messages_arrive_whole_however_they_are_cut(size: int) -> None:
    parser, delivered = collecting()

    for start in range(0, len(SENT), size):
        await parser.parse(SENT[start : start + size])

    assert len(delivered) == 5
    assert delivered == await expected(SENT)


async def test_nothing_of_a_lost_connection_gets_into_the_next() -> None:
    parser, delivered = collecting()

    await parser.parse(b"MSG told 1 100\r\nthe start of")
    parser.reset()
    await parser.parse(b"MSG told 1 5\r\nwhole\r\n")

    assert [body for *_, body in delivered] == [b"whole"]


async def test_what_is_left_of_a_connection_that_was_lost_meanwhile_is_dropped() -> None:
    delivered: list[bytes] = []

    async def lose() -> None:
        parser.reset()

    def deliver(
        number: int, subject: bytes, reply: bytes, headers: bytes, body: bytes
    ) -> Awaitable[None] | None:
        delivered.append(body)
        return lose() if body == b"last" else None

    parser = MessageParser(None, deliver)
    await parser.parse(b"MSG told 1 4\r\nlast\r\nMSG told 1 3\r\nnot\r\nMSG told 1 3\r\nno")
    await parser.parse(b"MSG told 1 5\r\nagain\r\n")

    assert delivered == [b"last", b"again"]


@pytest.mark.parametrize(
    "line", [b"MSG told 1\r\n", b"MSG told one 4\r\n", b"HMSG told 1 4\r\n", b"HELLO\r\n"]
)
async def test_a_line_that_makes_no_sense_is_an_error_of_the_protocol(line: bytes) -> None:
    parser, _ = collecting()

    with pytest.raises(ProtocolError):
        await parser.parse(line)
