"""Protects the server against bad clients: unfinished requests, too many connections, invalid frames."""

import asyncio
from typing import ClassVar

import h11
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from septet.common.values import Value

INVALID_PAYLOAD = 1007


class ConnectionLimits(Value):
    """How long a request may take to arrive, and how many connections may be open, WebSockets included."""

    request_seconds: float = 20.0
    connections: int = 500


class LimitedHttpProtocol(H11Protocol):
    """HTTP with a deadline for each request and a limit of connections."""

    limits: ClassVar[ConnectionLimits] = ConnectionLimits()
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # as the server's own
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.close()
        else:
            self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._wait_for_request()
        super().data_received(data)
        is_whole = self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)
        if is_whole or self.transport.get_protocol() is not self:
            self._cancel_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _wait_for_request(self) -> None:
        self._deadline = self.loop.call_later(self.limits.request_seconds, self.transport.close)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def http_protocol(limits: ConnectionLimits) -> type[LimitedHttpProtocol]:
    return type("LimitedHttpProtocol", (LimitedHttpProtocol,), {"limits": limits})


class SocketProtocol(WebSocketsSansIOProtocol):
    """Closes with code 1007 if a text frame is not UTF-8, without logging: that is the client's error."""

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not is_utf8(b"".join(self.frames)):
            self.frames = []
            self.conn.fail(INVALID_PAYLOAD, "not UTF-8")
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    async def send(self, message: ASGISendEvent) -> None:
        """Raise ClientDisconnected if the socket was closed because of the client's error."""
        if self.close_sent and self.handshake_complete:
            raise ClientDisconnected
        await super().send(message)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
