"""`mcp`: manages the MCP servers whose tools the assistants may use."""

from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session

if TYPE_CHECKING:
    from septet.wiring.mcp import McpServers
    from septet.wiring.session import Session


@click.group(epilog="Example: septet mcp add files -- npx some-mcp-server")
def mcp() -> None:
    """Manage MCP servers: every assistant can use their tools (-t assistant).

    They are programs of your choice that run with your rights, outside the sandbox.
    """


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
