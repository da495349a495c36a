"""The protocol's own conformance suite against our server, by npm: long, so by hand (`just torture`)."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from septet.settings.home import find_home
from septet.web.app import application
from septet.web.app_state import open_app_state
from septet.web.auth import Access
from septet.web.server import LOOPBACK, SignalFreeServer, uvicorn_config
from septet.wiring.session import open_session

TOKEN = "a-token-of-the-tests"
PACKAGES = ("node@22", "@modelcontextprotocol/conformance@0.1.16")
APPLICABLE = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
"""The others call tools, resources and prompts that only the suite's example server has; see docs/protocols.md."""


def with_token(app: ASGIApp) -> ASGIApp:
    """The suite sends no token: it is added, and everything else is as it came."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": list(scope["headers"])}
            MutableHeaders(scope=scope)["authorization"] = f"Bearer {TOKEN}"
        await app(scope, receive, send)

    return call


@asynccontextmanager
async def served(home: Path) -> AsyncGenerator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    access = Access(b"key", TOKEN, port, LOOPBACK, reusable=True)
    async with (
        open_session(find_home({"SEPTET_HOME": str(home)})) as session,
        open_app_state(session, "scripted:demo/hello") as app,
        anyio.create_task_group() as tasks,
    ):
        config = uvicorn_config(application(app, access))
        config.app = with_token(application(app, access))
        server = SignalFreeServer(config)
        tasks.start_soon(server.serve, [listener])
        yield f"http://127.0.0.1:{port}/mcp"
        server.should_exit = True


@pytest.mark.torture
@pytest.mark.anyio
async def test_every_scenario_that_applies_passes(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not here")
    install = ["npm", "install", "--prefix", str(tmp_path), *PACKAGES]
    done = await anyio.run_process(install, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot fetch the suite ({done.stderr.decode()[-200:]})")
    programs = tmp_path / "node_modules" / ".bin"
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    async with served(tmp_path / "home") as url:
        for scenario in APPLICABLE:
            run = ["conformance", "server", "--url", url, "--scenario", scenario]
            told = await anyio.run_process(
                run, env=environment, cwd=tmp_path, check=False, stderr=subprocess.STDOUT
            )
            text = told.stdout.decode()
            assert told.returncode == 0, text
            assert re.search(r"Passed: (\d+)/\1, 0 failed", text), text
