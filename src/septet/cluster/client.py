"""The NATS client, with faster headers and safer closing; subscriptions by callback; a cheap signal with timeout."""

import asyncio
import logging
from collections.abc import Callable
from urllib.parse import ParseResult

import nats.errors
from nats.aio.client import DEFAULT_FLUSH_TIMEOUT, Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport


class Signal:
    """One task waits, others notify. Waits share one timer, because a timer for each would cost more than the rest."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0

    def notify(self) -> None:
        """Wake the waiting task. A later wait does not see it: check for news before waiting."""
        self._wake(True)

    async def wait(self, seconds: float) -> bool:
        """Whether `notify` was called within `seconds`."""
        loop = asyncio.get_running_loop()
        self._until = loop.time() + seconds
        self._waiting = loop.create_future()
        if self._timer is not None and self._timer.when() > self._until:
            self.close()
        if self._timer is None:
            self._timer = loop.call_at(self._until, self._on_timer, loop)
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._waiting is not None and loop.time() < self._until:
            self._timer = loop.call_at(self._until, self._on_timer, loop)
        else:
            self._wake(False)

    def _wake(self, notified: bool) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(notified)


LOG = logging.getLogger("septet.cluster")
MessageCallback = Callable[[Msg], None]
"""Must not block: the next message is read when it returns."""


class CallbackFuture(asyncio.Future[Msg]):
    """The client sets the result of a subscription's future for each message: this one calls a function each time."""

    def __init__(self, callback: MessageCallback) -> None:
        super().__init__()
        self._callback = callback

    def set_result(self, result: Msg, /) -> None:
        try:
            self._callback(result)
        except Exception as error:  # a bad message must not end the connection
            LOG.warning("a message on %s is not valid (%s)", result.subject, type(error).__name__)


async def subscribe(client: Client, subject: str, callback: MessageCallback, queue: str = "") -> Subscription:
    """Call `callback` with each message of the subject; in a queue, each message goes to one subscriber."""
    return await client.subscribe(subject, queue=queue, future=CallbackFuture(callback))  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial


CLOSE_TIMEOUT = 0.3
"""Seconds to wait for a failed connection to close."""
EXPECTATION_PREFIX = "Nats-Expected-"
"""The prefix of headers that the server must check."""


class Transport(TcpTransport):
    """The client's TCP transport, with a limit on closing: after a failed TLS handshake that would never end."""

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        """Close the connection of a failed attempt first: the client leaves it open."""
        self.close()
        await super().connect(uri, buffer_size, connect_timeout)

    async def wait_closed(self) -> None:
        """Several tasks may wait on one future: a cancelled one must not cancel the others."""
        closing = asyncio.ensure_future(super().wait_closed())
        try:
            done, _ = await asyncio.wait([closing], timeout=CLOSE_TIMEOUT)
        finally:
            closing.cancel()
        if done and not closing.cancelled():
            closing.result()

    def __bool__(self) -> bool:
        return True


class Connection(Client):
    """A client with the name of its user and the permission errors that the server reported."""

    def __init__(self, user: str, over_web: bool = False) -> None:
        super().__init__()
        self.user = user
        self.permission_errors: list[str] = []
        self.on_reconnect: list[Callable[[], None]] = []
        """Called when a lost connection is back."""
        if not over_web:
            self._transport = Transport()

    async def publish(
        self, subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """Like the client's own method, at a quarter of the cost: that one checks every header separately."""
        if not headers or not self.is_connected or len(payload) > self.max_payload:
            await super().publish(subject, payload, reply, headers)
            return
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if not lines.count("\r") == lines.count("\n") == len(headers):
            raise nats.errors.BadHeaderError(lines)
        header = f"NATS/1.0\r\n{lines}\r\n".encode()
        command = f"HPUB {subject} {reply} {len(header)} {len(header) + len(payload)}\r\n".encode()
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += len(payload)
        await self._send_command(b"".join((command, header, payload, b"\r\n")))
        if self._flush_queue is not None and self._flush_queue.empty():
            await self._flush_pending()

    async def flush(self, timeout: int = DEFAULT_FLUSH_TIMEOUT) -> None:
        """Flush twice: the first ping may overtake what the client still buffers, the second one cannot."""
        await super().flush(timeout)
        await super().flush(timeout)

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        """Like the client's own method, at a tenth of the cost: that one checks every character of every name."""
        lines = raw.decode(errors="replace").split("\r\n")
        pairs = [line.partition(":") for line in lines if line]
        headers = {name: value.strip() for name, colon, value in pairs if colon and " " not in name}
        if len(headers) < len(pairs):
            # Repeated headers: the server's own come last, but of the expectations it checks the first.
            expectations = [pair for pair in reversed(pairs) if pair[0].startswith(EXPECTATION_PREFIX)]
            headers |= {name: value.strip() for name, _, value in expectations}
        return headers
