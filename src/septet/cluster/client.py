"""The NATS client, with faster headers and safer closing; subscriptions by callback; a cheap signal with timeout."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import ParseResult

import nats.errors
from nats.aio.client import DEFAULT_FLUSH_TIMEOUT, Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport

from septet.cluster.parser import MessageParser


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


CLOSE_TIMEOUT = 0.3
"""Seconds to wait for a failed connection to close."""
VERSION = "NATS/1.0"
"""What the headers of a message start with."""
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
        self._callbacks: dict[int, MessageCallback] = {}
        """Those of `listen`, by the number of the subscription."""
        self._ps = MessageParser(self, self._deliver)
        if not over_web:
            self._transport = Transport()

    async def listen(self, subject: str, callback: MessageCallback, queue: str = "") -> Subscription:
        """Call `callback` with each message of the subject; in a queue, each message goes to one subscriber.

        A subscription of the client itself takes a task and a queue.
        """
        number = self._sid + 1  # which `subscribe` takes before it waits for anything
        self._callbacks[number] = callback
        try:
            return await self.subscribe(subject, queue=queue, future=asyncio.Future[Msg]())  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        except nats.errors.Error:
            del self._callbacks[number]
            raise

    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        self._callbacks.pop(sid, None)
        super()._remove_sub(sid, max_msgs)

    def _deliver(
        self, number: int, subject: bytes, reply: bytes, headers: bytes, body: bytes
    ) -> Awaitable[None] | None:
        """Pass a message to its callback, or to the client for a subscription of its own."""
        callback = self._callbacks.get(number)
        if callback is None:
            return self._process_msg(number, subject, reply, body, headers)
        try:
            callback(Msg(self, subject.decode(), reply.decode(), body, parse_headers(headers) or None))
        except Exception as error:  # a bad message must not end the connection
            LOG.warning("a message on %r is not valid (%s)", subject, type(error).__name__)
        return None

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
        return header_values(raw.decode(errors="replace").split("\r\n"))


def parse_headers(raw: bytes) -> dict[str, str]:
    """The headers of a message; a status, which the server sends in their first line, is one of them."""
    first, *lines = raw.decode(errors="replace").split("\r\n")
    headers = header_values(lines)
    if status := first.removeprefix(VERSION).strip():
        headers |= {"Status": status[:3], "Description": status[3:].strip()}
    return headers


def header_values(lines: Sequence[str]) -> dict[str, str]:
    pairs = [line.split(": ", 1) for line in lines if line]
    try:
        headers: dict[str, str] = dict(pairs)
    except ValueError:  # a line that a server would not write
        pairs = [
            [name, value.strip()] for name, colon, value in (line.partition(":") for line in lines) if colon
        ]
        headers = dict(pairs)
    if len(headers) < len(pairs):
        # Repeated headers: the server's own come last, but of the expectations it checks the first.
        headers |= {name: value for name, value in reversed(pairs) if name.startswith(EXPECTATION_PREFIX)}
    return headers
