"""What the suites of others are run against: our own server in this process, for clients without a token."""

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from septet.settings.home import find_home
from septet.web.app import application
from septet.web.app_state import AppState, open_app_state
from septet.web.auth import Access
from septet.web.server import LOOPBACK, SignalFreeServer, uvicorn_config
from septet.wiring.session import open_session

TOKEN = "a-token-of-the-tests"


def with_token(app: ASGIApp) -> ASGIApp:
    """The suites send no token: it is added, and everything else is as it came."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": list(scope["headers"])}
            MutableHeaders(scope=scope)["authorization"] = f"Bearer {TOKEN}"
        await app(scope, receive, send)

    return call


def unchanged(state: AppState) -> None:
    """The server as it is."""


def same(app: ASGIApp) -> ASGIApp:
    return app


@asynccontextmanager
async def served(
    home: Path,
    model: str,
    prepare: Callable[[AppState], None] = unchanged,
    around: Callable[[ASGIApp], ASGIApp] = same,
) -> AsyncGenerator[str]:
    """The address of a server; `prepare` may change what it serves, `around` what it is asked."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    access = Access(b"key", TOKEN, port, LOOPBACK, reusable=True)
    async with (
        open_session(find_home({"SEPTET_HOME": str(home)})) as session,
        open_app_state(session, model) as state,
        anyio.create_task_group() as tasks,
    ):
        prepare(state)
        app = application(state, access)
        config = uvicorn_config(app)
        config.app = with_token(around(app))
        server = SignalFreeServer(config)
        tasks.start_soon(server.serve, [listener])
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
