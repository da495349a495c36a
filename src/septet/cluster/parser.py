"""Reads what a server sends, at two thirds of the cost of the NATS client's own parser."""

from collections.abc import Awaitable, Callable
from typing import Any

from nats.errors import ProtocolError
from nats.protocol.parser import Parser

LINE_END = b"\r\n"
MESSAGE, HEADED_MESSAGE = b"MSG", b"HMSG"
Deliver = Callable[[int, bytes, bytes, bytes, bytes], Awaitable[object] | None]
"""Takes a message: the number of its subscription, subject, reply subject, headers and body. What it returns is
awaited before the next message is read."""


class MessageParser(Parser):
    """Reads messages itself and leaves all other lines to the client's own parser."""

    def __init__(self, client: Any, deliver: Deliver) -> None:
        self._deliver = deliver
        self._resets = 0
        super().__init__(client)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial

    def reset(self) -> None:
        """Forget what is incomplete: the connection is a new one."""
        super().reset()
        self._incomplete: list[bytes] = []
        self._missing = 0
        """The bytes that the incomplete message still lacks, as far as that is known."""
        self._resets += 1

    async def parse(self, data: bytes = b"") -> None:
        self._incomplete.append(data)
        self._missing -= len(data)
        if self._missing > 0:  # the pieces of a large message are joined once
            return
        received = b"".join(self._incomplete)
        length, start, resets = len(received), 0, self._resets
        self._incomplete, self._missing = [], 0
        while (line_end := received.find(LINE_END, start)) >= 0:
            body = line_end + 2
            if received.startswith((MESSAGE, HEADED_MESSAGE), start):
                number, subject, reply, header_size, size = arguments(received[start:line_end])
                header, end = body, body + size
                if end + 2 > length:
                    self._missing = end + 2 - length
                    break
                body += header_size
                done = self._deliver(number, subject, reply, received[header:body], received[body:end])
                start = end + 2
            else:
                done = super().parse(received[start:body])
                start = body
            if done is not None:
                await done
                if self._resets != resets:
                    return
        if start < length:
            self._incomplete = [received[start:]]


def arguments(line: bytes) -> tuple[int, bytes, bytes, int, int]:
    """Of a message's first line: number of the subscription, subject, reply subject, size of headers and of all."""
    try:
        kind, subject, number, *rest = line.split()
        size = int(rest.pop())
        header_size = int(rest.pop()) if kind == HEADED_MESSAGE else 0
        return int(number), subject, rest[0] if rest else b"", header_size, size
    except (ValueError, IndexError) as error:
        raise ProtocolError(f"the server sent {line!r}") from error
