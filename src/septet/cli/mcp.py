"""`mcp`: servers whose tools the assistants may use, named by the person and kept in a file of theirs."""

from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session

if TYPE_CHECKING:
    from septet.wiring.mcp import McpServers
    from septet.wiring.session import Session


@click.group(epilog="Example: septet mcp add files -- npx some-mcp-server")
def mcp() -> None:
    """Servers that speak MCP: their tools are in the toolbox of every assistant (-t assistant).

    They are programs of your choice that run with your rights, outside the sandbox.
    """


def servers_of(session: "Session") -> "McpServers":
    assert session.mcp_servers is not None, "a session of this machine has them"
    return session.mcp_servers


@mcp.command(epilog="Example: septet mcp add files -- npx some-mcp-server")
@click.argument("name")
@click.argument("command", nargs=-1, required=True)
def add(name: str, command: tuple[str, ...]) -> int:
    """Name a server and the COMMAND that starts it; its tools are listed at once."""

    async def work(session: "Session") -> str:
        from septet.chat.names import checked_name
        from septet.wiring.mcp import McpCommand

        foreign = servers_of(session)
        added = McpCommand(command=command[0], args=command[1:])
        await foreign.check(checked_name(name), added)
        foreign.write({**foreign.read(), name: added})
        return await server_list(foreign)

    return in_session(work)


@mcp.command("list", epilog="Example: septet mcp list")
def list_servers() -> int:
    """The servers and their tools."""

    async def work(session: "Session") -> str:
        return await server_list(servers_of(session))

    return in_session(work, "there is no MCP server yet: septet mcp add NAME -- COMMAND")


@mcp.command(epilog="Example: septet mcp rm files")
@click.argument("name")
def rm(name: str) -> int:
    """Forget a server."""

    async def work(session: "Session") -> str:
        from septet.errors import BadUsage

        foreign = servers_of(session)
        named = foreign.read()
        if name not in named:
            raise BadUsage(f"there is no MCP server '{name}'", f"there are {', '.join(named) or 'none'}")
        foreign.write({other: command for other, command in named.items() if other != name})
        return f"{name} is forgotten"

    return in_session(work)


async def server_list(foreign: "McpServers") -> str:
    tools = await foreign.tools()
    first = [f"{tool.name}  {tool.offer().description.strip().splitlines()[0]}" for tool in tools.values()]
    return "\n".join(first)
