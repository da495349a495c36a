"""`mcp`: servers whose tools members may use, and our teams as one; `acp` for editors; `a2a` for other agents."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session

if TYPE_CHECKING:
    from septet.settings.mcp_file import McpServer
    from septet.wiring.mcp import FoundTool, McpServers
    from septet.wiring.session import Session


@click.group(epilog="Example: septet mcp add files -- npx some-mcp-server")
def mcp() -> None:
    """Manage MCP servers, whose tools members may use. `serve` is the other direction."""


@mcp.command(epilog="Example: septet mcp serve")
@click.option("-m", "--model", default="", envvar="SEPTET_MODEL", help="The model of new chats.")
@click.option(
    "--http", is_flag=True, help="Serve streamable HTTP at /mcp, beside the page, instead of stdio."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="For --http.")
@click.option("--host", default="127.0.0.1", show_default=True, help="For --http; all need the token.")
@click.option(
    "--token-file", type=click.Path(path_type=Path), help="The token that clients send, for --http."
)
def serve(model: str, http: bool, port: int, host: str, token_file: Path | None) -> int:
    """Let other programs build, ask, check and deliver with the teams here, as tools of MCP."""
    import anyio

    from septet.wiring.handle import settle

    settle()
    if not http:
        try:
            from septet.protocols.mcp_server import serve_stdio
        except ImportError as error:
            raise click.UsageError("it needs the mcp package: pip install 'septet[mcp]'") from error
        return anyio.run(serve_stdio, model)
    if token_file is None:
        raise click.UsageError("--http needs --token-file FILE with a token that clients send")
    from septet.web.server import ServeOptions, serve_with_options

    options = ServeOptions(port=port, host=host, token_file=token_file, no_open=True, model=model)
    return anyio.run(serve_with_options, options)


def servers_of(session: "Session") -> "McpServers":
    assert session.mcp_servers is not None, "a session on this machine has MCP servers"
    return session.mcp_servers


@mcp.command(epilog="Example: septet mcp add files --read ~/notes -- npx some-mcp-server")
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--url", default="", help="A server that is reached by streamable HTTP, instead of a COMMAND.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Sent with each request.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable of the command.")
@click.option(
    "--network", multiple=True, metavar="HOST", help="A host that it may reach; `on` is every public one."
)
@click.option("--read", "folders", multiple=True, metavar="FOLDER", help="A folder that it may read.")
@click.option("--write", "writes", multiple=True, metavar="FOLDER", help="A folder that it may change.")
@click.option("--unsafe", is_flag=True, help="Let the command run with your rights, outside the sandbox.")
@click.option("--role", "roles", multiple=True, help="Who may use its tools; else those who change files.")
@click.option(
    "--seconds", type=click.FloatRange(1, 3600), default=60.0, show_default=True, help="For a call."
)
def add(name: str, command: tuple[str, ...], **given: object) -> int:
    """Add a server by a name and the COMMAND that starts it, or its --url, and list its tools.

    A command runs in the sandbox: it sees a folder of its own, what the command line names, --read and --write, and
    nothing of the network but --network.
    """
    wanted = McpOptions(**given)  # pyright: ignore[reportArgumentType]  # click has checked them

    async def work(session: "Session") -> str:
        from septet.chat.names import checked_name
        from septet.wiring.mcp_transports import visit_by_browser

        servers, added = servers_of(session), wanted.server(command)
        servers.forget(checked_name(name))
        found = await servers.check(name, added, visit_by_browser)
        servers.write({**servers.read(), name: added})
        return tool_lines(found)

    return in_session(work)


@dataclass(frozen=True)
class McpOptions:
    """The options of the command line."""

    url: str
    headers: tuple[str, ...]
    env: tuple[str, ...]
    network: tuple[str, ...]
    folders: tuple[str, ...]
    writes: tuple[str, ...]
    unsafe: bool
    roles: tuple[str, ...]
    seconds: float

    def server(self, command: tuple[str, ...]) -> "McpServer":
        from septet.errors import BadUsage
        from septet.settings.mcp_file import SECONDS, McpServer

        if bool(command) == bool(self.url):
            raise BadUsage("a server has either a command or a --url", "septet mcp add NAME -- COMMAND")
        return McpServer(
            command=command[0] if command else "",
            args=command[1:],
            env=pairs(self.env),
            network="on" if self.network == ("on",) else self.network or "off",
            folders=tuple(map(absolute, self.folders)),
            writes=tuple(map(absolute, self.writes)),
            unsafe=self.unsafe,
            url=self.url,
            headers=pairs(self.headers),
            roles=self.roles,
            seconds=SECONDS if self.seconds == SECONDS else self.seconds,  # what is usual is not written
        )


def pairs(given: tuple[str, ...]) -> dict[str, str]:
    from septet.errors import BadUsage

    if wrong := next((one for one in given if "=" not in one), None):
        raise BadUsage(f"'{wrong[:40]}' is not NAME=VALUE", "write it with an equals sign")
    return {name: value for name, _, value in (one.partition("=") for one in given)}


def absolute(folder: str) -> str:
    return str(Path(folder).expanduser().absolute())


@mcp.command("list", epilog="Example: septet mcp list")
def list_servers() -> int:
    """List the servers and their tools; one that is not used is marked with the reason."""

    async def work(session: "Session") -> str:
        servers = servers_of(session)
        await servers.tools()
        return tool_lines(servers.found)

    return in_session(work, "there is no MCP server yet: septet mcp add NAME -- COMMAND")


@mcp.command(epilog="Example: septet mcp approve files")
@click.argument("name")
def approve(name: str) -> int:
    """Use the tools of a server as they are now, although they are new, have changed or give orders."""

    async def work(session: "Session") -> str:
        servers = servers_of(session)
        found = await servers.check(name, known_server(servers, name))
        servers.approve(found)
        return "\n".join(f"{one.offered}  {one.description}" for one in found)

    return in_session(work)


@mcp.command(epilog="Example: septet mcp login tickets")
@click.argument("name")
def login(name: str) -> int:
    """Give a server at a --url the permission that it wants, in a browser on this machine."""

    async def work(session: "Session") -> str:
        from septet.wiring.mcp_transports import visit_by_browser

        servers = servers_of(session)
        return tool_lines(await servers.check(name, known_server(servers, name), visit_by_browser))

    return in_session(work)


@mcp.command(epilog="Example: septet mcp rm files")
@click.argument("name")
def rm(name: str) -> int:
    """Remove a server."""

    async def work(session: "Session") -> str:
        servers = servers_of(session)
        known_server(servers, name)
        servers.write({other: entry for other, entry in servers.read().items() if other != name})
        return f"{name} is removed"

    return in_session(work)


def known_server(servers: "McpServers", name: str) -> "McpServer":
    from septet.errors import BadUsage

    known = servers.read()
    if name not in known:
        raise BadUsage(f"there is no MCP server '{name}'", f"there are {', '.join(known) or 'none'}")
    return known[name]


def tool_lines(found: "Sequence[FoundTool]") -> str:
    """A line a tool; one that is not used says why, and how it would be."""
    lines = [(one, one.description.strip().partition("\n")[0]) for one in found]
    return "\n".join(
        f"{one.offered}  {text}"
        + (f"  (not used, {one.why}: septet mcp approve {one.server})" if one.why else "")
        for one, text in lines
    )


@click.command(epilog="Example: septet acp")
@click.option("-m", "--model", default="", envvar="SEPTET_MODEL", help="The model of new chats.")
def acp(model: str) -> int:
    """Serve an editor by the Agent Client Protocol, on standard input and output."""
    import anyio

    try:
        from septet.protocols.acp_agent import serve_acp
    except ImportError as error:
        raise click.UsageError("it needs a package: pip install 'septet[acp]'") from error
    return anyio.run(serve_acp, model)


@click.command(epilog="Example: septet a2a --token-file token")
@click.option("-m", "--model", default="", envvar="SEPTET_MODEL", help="The model of new chats.")
@click.option("--port", type=click.IntRange(0, 65535), default=8001, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="All clients need the token.")
@click.option(
    "--token-file", type=click.Path(path_type=Path), required=True, help="The token that clients send."
)
def a2a(model: str, port: int, host: str, token_file: Path) -> int:
    """Serve other agents by A2A at /a2a, beside the page. The agent card is at /.well-known/agent-card.json."""
    import anyio

    from septet.web.server import ServeOptions, serve_with_options
    from septet.wiring.handle import settle

    if find_spec("a2a") is None:
        raise click.UsageError("it needs a package: pip install 'septet[a2a]'")
    settle()
    options = ServeOptions(port=port, host=host, token_file=token_file, no_open=True, model=model)
    return anyio.run(serve_with_options, options)
