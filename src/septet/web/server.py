"""Starts the web server, protects it against bad clients, and shuts it down without losing anything."""

import asyncio
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import time
from typing import ClassVar

import anyio
import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from septet.cluster.endpoint import ConnectOptions, command_line_options, load_group_chat
from septet.common.hosts import is_loopback
from septet.common.values import Value
from septet.errors import BadUsage
from septet.settings.group_chats import without_models
from septet.settings.home import find_home
from septet.web.app import ASSETS, application
from septet.web.app_state import open_app_state
from septet.web.auth import Access, load_cookie_key, read_token, sign_link
from septet.wiring.session import Session, open_session

INVALID_PAYLOAD = 1007
KEY_FILE = "web.key"
PROBE_SECONDS = 3.0


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


LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
OpenSession = Callable[[], AbstractAsyncContextManager[Session]]
MAX_SOCKET_MESSAGE = 1 << 16
SHUTDOWN_SECONDS = 2


class Address(Value):
    """Where to listen; clients on other machines need the token of `token_file`."""

    host: str = "127.0.0.1"
    port: int = 8001
    token_file: Path | None = None


class SignalFreeServer(uvicorn.Server):
    """Leaves signal handling to us: uvicorn would raise the signals again when it has ended."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve_web(
    address: Address, model: str, open_browser: bool, opening: OpenSession = open_session
) -> int:
    """Serve until SIGINT or SIGTERM; returns the exit code."""
    if not is_loopback(address.host) and address.token_file is None:
        raise BadUsage(
            f"other machines can reach {address.host}",
            "add --token-file FILE with a token that they must send",
        )
    if not (ASSETS / "index.html").exists():
        raise BadUsage("the page is not built", "run npm ci && npm run build in web/")
    with open_listening_socket(address) as listener:
        async with opening() as session:
            return await serve_session(session, listener, address, model, open_browser)


async def serve_session(
    session: Session, listener: socket.socket, address: Address, model: str, open_browser: bool
) -> int:
    port: int = listener.getsockname()[1]
    token = read_token(address.token_file) if address.token_file else secrets.token_urlsafe(24)
    key = load_cookie_key(find_home().data / KEY_FILE)
    names = LOOPBACK | {address.host.lower(), socket.gethostname().lower()}
    access = Access(key, token, port, frozenset(names), reusable=address.token_file is not None)
    async with open_app_state(session, model) as app:
        server = SignalFreeServer(uvicorn_config(application(app, access)))
        announce(
            f"http://{url_host(address.host)}:{port}/", token, address.token_file is not None, open_browser
        )
        return await serve_until_signal(server, listener)


def uvicorn_config(app: Starlette, limits: ConnectionLimits | None = None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=http_protocol(limits or ConnectionLimits()),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws=SocketProtocol,
        ws_max_size=MAX_SOCKET_MESSAGE,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


async def serve_until_signal(server: uvicorn.Server, listener: socket.socket) -> int:
    """Serve until a signal; exit code 0 for Ctrl-C, which is the normal way to end it."""
    caught: list[int] = []

    async def wait_for_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                caught.append(number)
                server.should_exit = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_signal)
        await server.serve([listener])
        tasks.cancel_scope.cancel()
    return 0 if caught and caught[0] == signal.SIGINT else 128 + (caught[0] if caught else 1)


def open_listening_socket(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise BadUsage(
            f"septet cannot listen on {address.host}:{address.port} ({error.strerror})",
            "is septet web already running? If not, choose another --port",
        ) from error
    return listener


def announce(url: str, token: str, shared: bool, open_browser: bool) -> None:
    """Print the address; a shared token is not shown."""
    link = url if shared else f"{url}?token={token}"
    sys.stdout.write(link + "\n")
    sys.stdout.flush()
    if open_browser and sys.stdout.isatty():
        webbrowser.open(link)


def print_link(host: str, port: int) -> int:
    """Print an address for another browser; the server that runs knows it by the key that both read."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_SECONDS)
        if probe.connect_ex((host, port)):
            raise BadUsage(f"no server answers on {host}:{port}", "start septet web, or name its --port")
    token = sign_link(load_cookie_key(find_home().data / KEY_FILE), time())
    sys.stdout.write(f"http://{url_host(host)}:{port}/?token={token}\n")
    return 0


def url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True)
class ServeOptions:
    """The options of the command line."""

    port: int
    host: str
    token_file: Path | None
    no_open: bool
    model: str
    url: str = ""
    nats_token_file: Path | None = None
    tls_ca: str = ""
    config: Path | None = None


async def serve_with_options(options: ServeOptions) -> int:
    address = Address(host=options.host, port=options.port, token_file=options.token_file)
    if not options.url and options.config is None:
        return await serve_web(address, options.model, not options.no_open)
    from septet.cluster.endpoint import endpoint_of
    from septet.wiring.cluster import open_cluster

    team = without_models(load_group_chat(options.config).team) if options.config is not None else None
    server = ConnectOptions(
        url=options.url, token_file=options.nats_token_file, tls_ca=options.tls_ca, config=options.config
    )
    opening = partial(
        open_cluster, endpoint_of(server), team=team, wait=float("inf"), how=command_line_options(server)
    )
    return await serve_web(address, options.model, not options.no_open, opening)
