"""Tools of MCP servers that the person has named: started when they are first needed, called until the session ends."""

import logging
import os
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec
from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from septet.common.documents import read_document
from septet.common.values import Value
from septet.domain.messages import ToolOffer
from septet.domain.plans import Refusal
from septet.errors import BadConfig
from septet.tools.registry import Tool

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as ListedTool
from collections.abc import Awaitable

from septet.tools.registry import Outcome, ToolContext, misfit, read_arguments

SECONDS = 60.0
INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
"""Model services allow no other characters in tool names."""


class McpCommand(Value):
    """A server that speaks MCP on its standard input and output."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class McpFile(Value, rename={"servers": "mcpServers"}):
    """The content of mcp.json, in the form that other programs use too."""

    servers: Mapping[str, McpCommand] = {}


class McpServers:
    """The MCP servers of one session. They run in their own event loop, independent of turns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = ExitStack()
        self._tools: dict[str, Tool] | None = None

    def close(self) -> None:
        self._opened.close()

    def read(self) -> Mapping[str, McpCommand]:
        return read_document(self._path, McpFile).servers if self._path.exists() else {}

    def write(self, servers: Mapping[str, McpCommand]) -> None:
        """Rewrite the file; only its owner may read it, because commands may contain keys."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._path.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(McpFile(servers=servers))) + b"\n")
        draft.replace(self._path)

    async def check(self, server: str, command: McpCommand) -> None:
        """Start a server. Raises BadConfig if it does not start or does not speak MCP."""
        with closing(McpServers(self._path)) as passing:
            await to_thread.run_sync(passing._start, {server: command})

    async def tools(self) -> Mapping[str, Tool]:
        """All tools by name, prefixed with the server's name; starts the configured servers."""
        if self._tools is None:
            named = self.read()
            self._tools = await to_thread.run_sync(self._start, named) if named else {}
        return self._tools

    def _start(self, named: Mapping[str, McpCommand]) -> dict[str, Tool]:
        portal = self._opened.enter_context(start_blocking_portal())
        found = [self._list_tools(portal, name, command) for name, command in named.items()]
        return {tool.name: tool for tools in found for tool in tools}

    def _list_tools(self, portal: BlockingPortal, server: str, command: McpCommand) -> list[Tool]:
        silence = self._opened.enter_context(Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  # closed with the rest
        client = make_client(server, command, silence)
        try:
            entered: AbstractContextManager[Client] = portal.wrap_async_context_manager(client)
            self._opened.enter_context(entered)
            listed = portal.call(client.list_tools).tools
        except Exception as error:  # any failure of a third-party program becomes one line
            cause = f"the MCP server '{server}' does not work ({error_line(error)})"
            raise BadConfig(cause, f"try `{command.command}` yourself, or: septet mcp rm {server}") from error
        return [make_tool(server, one, portal, client) for one in listed]


def make_client(server: str, command: McpCommand, errors: TextIO) -> "Client":
    """Not started yet; what it says on its standard error goes there."""
    try:
        from mcp import Client, StdioServerParameters, stdio_client
    except ImportError as error:
        cause = f"the MCP server '{server}' needs the mcp package"
        raise BadConfig(cause, "install it: pip install 'septet[mcp]'") from error
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    environment = {"PATH": os.environ.get("PATH", ""), **command.env}
    started = StdioServerParameters(command=command.command, args=list(command.args), env=environment)
    return Client(stdio_client(started, errlog=errors), read_timeout_seconds=SECONDS)


def make_tool(server: str, tool: "ListedTool", portal: BlockingPortal, client: "Client") -> Tool:
    async def call(arguments: Mapping[str, object]) -> str | Refusal:
        async def ask() -> "CallToolResult":
            return await client.call_tool(tool.name, dict(arguments))

        try:
            return tool_result_text(await to_thread.run_sync(portal.call, ask, abandon_on_cancel=True))
        except Exception as error:  # third-party program: its errors go to the model
            return Refusal(reason=f"{tool.name} failed: {error_line(error)}")

    name = INVALID_CHARACTERS.sub("_", f"{server}_{tool.name}")[:64]
    offered = ToolOffer(name=name, description=tool.description or tool.name, parameters=tool.input_schema)
    return mcp_tool(offered, make_validator(tool.input_schema), call)


def make_validator(schema: Mapping[str, object]) -> Callable[[Mapping[str, object]], str]:
    from jsonschema.validators import validator_for

    validator = validator_for(schema)(schema)

    def check(arguments: Mapping[str, object]) -> str:
        errors = sorted(
            validator.iter_errors(msgspec.to_builtins(arguments)),
            key=lambda error: list(map(str, error.path)),
        )
        return "; ".join(f"{error.json_path}: {error.message}" for error in errors[:5])

    return check


def tool_result_text(result: "CallToolResult") -> str | Refusal:
    """The result as text: texts unchanged, structures as JSON, other content by its kind."""
    parts = [getattr(part, "text", None) or f"({part.type})" for part in result.content]
    if not parts and result.structured_content is not None:
        parts = [msgspec.json.encode(result.structured_content).decode()]
    text = "\n".join(parts)
    return Refusal(reason=text or "it failed") if result.is_error else text


def error_line(error: BaseException) -> str:
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return error_line(inner[0]) if inner else f"{type(error).__name__}: {error}"[:300]


Call = Callable[[Mapping[str, object]], Awaitable[Outcome]]
Check = Callable[[Mapping[str, object]], str]
"""Says what is wrong with the arguments; empty if they are valid."""


def mcp_tool(offered: ToolOffer, check: Check, call: Call) -> Tool:
    """A tool of an MCP server; not repeatable, because its effects are unknown."""

    async def use(context: ToolContext, arguments: str) -> Outcome:
        wanted = read_arguments(arguments)
        if isinstance(wanted, Refusal):
            return wanted
        trouble = check(wanted)
        return misfit(offered.name, trouble) if trouble else await call(wanted)

    return Tool(offered.name, offered.description, offered.parameters, use, repeatable=False)
