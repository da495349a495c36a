"""`mcp`: MCP servers whose tools the assistants may use, and our teams as one; `acp`: our teams for editors."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session

if TYPE_CHECKING:
    from septet.wiring.mcp import McpServers
    from septet.wiring.session import Session


@click.group(epilog="Example: septet mcp add files -- npx some-mcp-server")
def mcp() -> None:
    """Manage MCP servers: every assistant can use their tools (-t assistant). `serve` is the other direction.

    They are programs of your choice that run with your rights, outside the sandbox.
    """


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


@mcp.command(epilog="Example: septet mcp add files -- npx some-mcp-server")
@click.argument("name")
@click.argument("command", nargs=-1, required=True)
def add(name: str, command: tuple[str, ...]) -> int:
    """Add a server by a name and the COMMAND that starts it, and list its tools."""

    async def work(session: "Session") -> str:
        from septet.chat.names import checked_name
        from septet.wiring.mcp import McpCommand

        servers = servers_of(session)
        added = McpCommand(command=command[0], args=command[1:])
        await servers.check(checked_name(name), added)
        servers.write({**servers.read(), name: added})
        return await server_list(servers)

    return in_session(work)


@mcp.command("list", epilog="Example: septet mcp list")
def list_servers() -> int:
    """List the servers and their tools."""

    async def work(session: "Session") -> str:
        return await server_list(servers_of(session))

    return in_session(work, "there is no MCP server yet: septet mcp add NAME -- COMMAND")


@mcp.command(epilog="Example: septet mcp rm files")
@click.argument("name")
def rm(name: str) -> int:
    """Remove a server."""

    async def work(session: "Session") -> str:
        from septet.errors import BadUsage

        servers = servers_of(session)
        known = servers.read()
        if name not in known:
            raise BadUsage(f"there is no MCP server '{name}'", f"there are {', '.join(known) or 'none'}")
        servers.write({other: command for other, command in known.items() if other != name})
        return f"{name} is removed"

    return in_session(work)


async def server_list(servers: "McpServers") -> str:
    tools = await servers.tools()
    lines = [f"{tool.name}  {tool.offer().description.strip().splitlines()[0]}" for tool in tools.values()]
    return "\n".join(lines)


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
