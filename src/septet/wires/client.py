"""The NATS client, where its ways are too slow for us or never end."""

from urllib.parse import ParseResult

import anyio
import nats.errors
from nats.aio.client import Client
from nats.aio.transport import TcpTransport

PARTING = 0.3
"""Seconds for the end of a connection that has failed."""
WISH = "Nats-Expected-"
"""What a publisher tells the server to compare."""


class Wire(TcpTransport):
    """The client's own way over TCP. One whose TLS handshake failed never ends, and would be waited for for ever."""

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        """Where a try failed, its connection is still open, and nobody else would close it."""
        self.close()
        await super().connect(uri, buffer_size, connect_timeout)

    async def wait_closed(self) -> None:
        with anyio.move_on_after(PARTING):
            await super().wait_closed()

    def __bool__(self) -> bool:
        return True


class Connection(Client):
    """A client that knows its name and remembers what the server would not let it do."""

    def __init__(self, user: str, over_web: bool = False) -> None:
        super().__init__()
        self.user = user
        self.refused: list[str] = []
        if not over_web:
            self._transport = Wire()

    async def publish(
        self, subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """As the client does, which looks at every header by itself: a quarter of the cost."""
        if not headers or not self.is_connected or len(payload) > self.max_payload:
            await super().publish(subject, payload, reply, headers)
            return
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if not lines.count("\r") == lines.count("\n") == len(headers):
            raise nats.errors.BadHeaderError(lines)
        head = f"NATS/1.0\r\n{lines}\r\n".encode()
        whole = f"HPUB {subject} {reply} {len(head)} {len(head) + len(payload)}\r\n".encode()
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += len(payload)
        await self._send_command(b"".join((whole, head, payload, b"\r\n")))
        if self._flush_queue is not None and self._flush_queue.empty():
            await self._flush_pending()

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        """As the client does, at a tenth of the cost: it looks at every character of every name."""
        lines = raw.decode(errors="replace").split("\r\n")
        pairs = [line.partition(":") for line in lines if line]
        found = {name: value.strip() for name, colon, value in pairs if colon and " " not in name}
        if len(found) < len(pairs):
            # Said twice: the server adds its own at the end, but heeds the first wish.
            wishes = [pair for pair in reversed(pairs) if pair[0].startswith(WISH)]
            found |= {name: value.strip() for name, _, value in wishes}
        return found
