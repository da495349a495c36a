"""What MCP's conformance suite starts as a client: our own client side, with nobody at the browser.

It connects to the address that is its last argument, lists the tools and calls the first one, as a member would.
"""

import os
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import msgspec
from mcp.shared.auth import AuthorizationCodeResult

from septet.domain.plans import Refusal
from septet.settings.mcp_file import McpServer
from septet.wiring.mcp import McpServers

ARGUMENTS = b'{"a": 2, "b": 3}'


class Given(msgspec.Struct):
    """What the suite says of a scenario."""

    client_id: str = ""
    client_secret: str = ""


async def issuer_of(url: str) -> str:
    """What a person reads in a service's pages: who gives its tokens."""
    parts = urlsplit(url)
    async with httpx2.AsyncClient() as http:
        found = await http.get(
            f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
        )
    return str(found.json()["authorization_servers"][0])


async def visit(url: str) -> AuthorizationCodeResult:
    """A person who always agrees."""
    async with httpx2.AsyncClient() as http:
        answer = await http.get(url)
    found = parse_qs(urlsplit(answer.headers["location"]).query)
    issuer = found.get("iss", [None])[0]
    return AuthorizationCodeResult(code=found["code"][0], state=found["state"][0], iss=issuer)


async def main(url: str) -> int:
    given = msgspec.json.decode(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"), type=Given)
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    issuer = await issuer_of(url) if "client-credentials" in scenario else ""
    entry = McpServer(url=url, client_id=given.client_id, client_secret=given.client_secret, issuer=issuer)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(McpServers(Path(folder) / "mcp.json", visit)) as servers,
    ):
        servers.write({"suite": entry})
        tools = await servers.tools()
        failed = False
        for tool in list(tools.values())[:1]:
            known = dict(tool.parameters).get("properties", {})
            wanted = ARGUMENTS.decode() if known else "{}"
            said = await tool.call(None, wanted)  # pyright: ignore[reportArgumentType]  # a server's tool looks at no workspace
            failed = isinstance(said, Refusal)
            sys.stdout.write(f"{tool.name}: {said}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(anyio.run(main, sys.argv[-1]))
