"""The protocol's own conformance suite against our server and our client, by npm: long, so by hand (`just torture`).

The server scenarios call tools, read resources and get prompts of names that the suite gives: they are added to our
server, so that its transport, sessions, streams and authentication are what is tested (`conformance_server.py`).
"""

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest
from protocols.conformance_server import suite_server
from protocols.suites import served

from septet.protocols.mcp_server import open_http_endpoint
from septet.web.app_state import AppState, LazyEndpoint

PACKAGES = ("node@22", "@modelcontextprotocol/conformance@0.1.16")
CLIENT = f"{sys.executable} {Path(__file__).with_name('conformance_client.py')}"
SERVER_SCENARIOS = tuple(
    """server-initialize ping tools-list tools-call-simple-text tools-call-image tools-call-audio
    tools-call-embedded-resource tools-call-mixed-content tools-call-error tools-call-with-progress tools-call-sampling
    tools-call-elicitation elicitation-sep1034-defaults elicitation-sep1330-enums server-sse-multiple-streams
    resources-list resources-read-text resources-read-binary resources-templates-read prompts-list prompts-get-simple
    prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image dns-rebinding-protection""".split()
)
"""All but those for what the server does not offer; see docs/protocols.md."""
CLIENT_SCENARIOS = tuple(
    """initialize tools_call sse-retry auth/metadata-default auth/metadata-var1 auth/metadata-var2 auth/metadata-var3
    auth/scope-from-www-authenticate auth/scope-from-scopes-supported auth/scope-omitted-when-undefined
    auth/scope-step-up auth/scope-retry-limit auth/token-endpoint-auth-basic auth/token-endpoint-auth-post
    auth/token-endpoint-auth-none auth/pre-registration
    auth/2025-03-26-oauth-endpoint-fallback auth/resource-mismatch auth/offline-access-scope
    auth/offline-access-not-supported auth/client-credentials-basic""".split()
)


async def conformance(folder: Path, *arguments: str) -> str:
    programs = folder / "node_modules" / ".bin"
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = await anyio.run_process(
        ["conformance", *arguments], env=environment, cwd=folder, check=False, stderr=subprocess.STDOUT
    )
    return done.stdout.decode()


async def install(folder: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not here")
    done = await anyio.run_process(["npm", "install", "--prefix", str(folder), *PACKAGES], check=False)
    if done.returncode:
        pytest.skip(f"npm cannot fetch the suite ({done.stderr.decode()[-200:]})")


def passed(text: str) -> bool:
    """Whether the suite says that every check passed, and that there was one."""
    return re.search(r"Passed: ([1-9]\d*)/\1, 0 failed", text) is not None


def prepare(state: AppState) -> None:
    opening = partial(open_http_endpoint, build=suite_server)
    state.mcp = LazyEndpoint("mcp", lambda: opening, state.service, state.tasks)


@pytest.mark.torture
@pytest.mark.anyio
@pytest.mark.filterwarnings(
    "ignore::mcp.shared.exceptions.MCPDeprecationWarning"
)  # sampling, which the suite wants
async def test_every_scenario_for_a_server_passes(tmp_path: Path) -> None:
    await install(tmp_path)
    async with served(tmp_path / "home", "scripted:demo/hello", prepare) as url:
        told = {
            scenario: await conformance(tmp_path, "server", "--url", f"{url}/mcp", "--scenario", scenario)
            for scenario in SERVER_SCENARIOS
        }
    assert not {name: text[-2000:] for name, text in told.items() if not passed(text)}


@pytest.mark.torture
@pytest.mark.anyio
async def test_every_scenario_for_a_client_passes(tmp_path: Path) -> None:
    await install(tmp_path)
    told = {
        scenario: await conformance(
            tmp_path, "client", "--command", CLIENT, "--scenario", scenario, "--timeout", "90000"
        )
        for scenario in CLIENT_SCENARIOS
    }
    assert not {name: text[-2000:] for name, text in told.items() if not passed(text)}
