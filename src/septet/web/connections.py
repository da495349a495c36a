"""Connections of clients that keep no rule: half a request, too many at once, frames that are none."""

import asyncio
from typing import ClassVar

import h11
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from septet.common.values import Value

NOT_TEXT = 1007


class Patience(Value):
    """How long a request may take to come whole, and how many connections may be open; sockets of pages count too."""

    request_seconds: float = 20.0
    connections: int = 500


class BoundedProtocol(H11Protocol):
    """HTTP whose clients have to come to the point."""

    patience: ClassVar[Patience] = Patience()
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # as the server's own
        super().connection_made(transport)
        if len(self.connections) > self.patience.connections:
            transport.close()
        else:
            self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._wait_for_request()
        super().data_received(data)
        is_whole = self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)
        if is_whole or self.transport.get_protocol() is not self:
            self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest()
        super().connection_lost(exc)

    def _wait_for_request(self) -> None:
        self._deadline = self.loop.call_later(self.patience.request_seconds, self.transport.close)

    def _rest(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def bounded_protocol(patience: Patience) -> type[BoundedProtocol]:
    return type("BoundedProtocol", (BoundedProtocol,), {"patience": patience})


class SocketProtocol(WebSocketsSansIOProtocol):
    """Closes by the protocol's own code where a text is none, and tells nobody of it: that is the client's affair."""

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not is_text(b"".join(self.frames)):
            self.frames = []
            self.conn.fail(NOT_TEXT, "not UTF-8")
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    async def send(self, message: ASGISendEvent) -> None:
        """Who spoke on while the socket was closed for what the client did finds it gone."""
        if self.close_sent and self.handshake_complete:
            raise ClientDisconnected
        await super().send(message)


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
