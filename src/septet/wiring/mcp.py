"""Tools of MCP servers that the person has named: started when they are first needed, called until the session ends."""

import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal
from msgspec.structs import replace

from septet.common.documents import read_document
from septet.common.values import Value
from septet.domain.messages import ToolOffer
from septet.domain.plans import Refusal
from septet.errors import BadConfig, SeptetError, innermost
from septet.settings.home import write_private
from septet.settings.mcp_file import McpFile, McpServer
from septet.tools.registry import Outcome, Tool, ToolContext, misfit, read_arguments

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as ListedTool

    from septet.wiring.mcp_transports import Transports, Visit

MAX_NAME = 64
MAX_DESCRIPTION = 2000
MAX_TOOLS = 200
"""Of one server."""
MAX_STARTS = 4
"""How often a server is started in a session before it is given up."""
MAX_PAGES = 50
"""Of one list."""
MAX_RESULT = 1 << 20
MAX_REFERENCES = 10_000
"""How often a schema may refer to a part of itself while one call is checked."""
INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
"""Model services allow no other characters in tool names."""
HIDDEN_CHARACTERS = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Characters that a person does not see in a list, and a model reads."""
INSTRUCTIONS = re.compile(
    r"<\s*/?\s*(important|system|instructions?|secret)\s*>|\b(ignore|disregard|forget)\b[^.\n]{0,40}\b(previous|prior|above|"
    r"earlier|other)\b|do(?: not|n't) (?:tell|mention|inform|show)[^.\n]{0,30}\b(?:user|person|human)\b|"
    r"\b(?:before|instead of) (?:using|calling) (?:this|any|other)\b|\bsystem prompt\b|~/\.ssh|id_rsa|\.env\b",
    re.IGNORECASE,
)
"""What a description says that means to steer a model rather than to describe a tool."""


Approved = Mapping[str, Mapping[str, str]]
"""The digest of each tool, by server, as the person has approved it."""


class FoundTool(Value):
    """A tool that a server offers now. `why` says why it is not used; empty if it is."""

    server: str
    name: str
    offered: str
    description: str
    digest: str
    why: str = ""


class McpServers:
    """The MCP servers of one session. They run in their own event loop, independent of turns."""

    def __init__(self, path: Path, visit: "Visit | None" = None) -> None:
        self._path = path
        self._visit = visit
        self._opened = ExitStack()
        self._tools: dict[str, Tool] | None = None
        self.found: list[FoundTool] = []
        """What the started servers offer, used or not."""

    def close(self) -> None:
        self._opened.close()

    def read(self) -> Mapping[str, McpServer]:
        return read_document(self._path, McpFile).servers if self._path.exists() else {}

    def write(self, servers: Mapping[str, McpServer]) -> None:
        """Rewrite the file; only its owner may read it, because commands may contain keys."""
        write_private(self._path, msgspec.json.format(msgspec.json.encode(McpFile(servers=servers))) + b"\n")
        for gone in self._approved().keys() - servers.keys():
            self.forget(gone)

    @property
    def folder(self) -> Path:
        """Where each server has a folder of its own."""
        return self._path.parent / "mcp"

    async def check(self, server: str, entry: McpServer, visit: "Visit | None" = None) -> Sequence[FoundTool]:
        """Start a server and list its tools. Raises BadConfig if it does not start or does not speak MCP."""
        with closing(McpServers(self._path, visit)) as passing:
            await to_thread.run_sync(passing._start, {server: entry})
            return passing.found

    async def tools(self) -> Mapping[str, Tool]:
        """All tools by name, prefixed with the server's name; starts the configured servers."""
        if self._tools is None:
            named = self.read()
            self._tools = await to_thread.run_sync(self._start, named) if named else {}
        return self._tools

    def approve(self, found: Sequence[FoundTool]) -> None:
        """From now on these tools may be used as they are; what they say later is asked about again."""
        approved = {name: dict(tools) for name, tools in self._approved().items()}
        for one in found:
            approved.setdefault(one.server, {})[one.name] = one.digest
        self._keep(approved)

    def forget(self, server: str) -> None:
        """Another server of that name is another one: nothing of it is approved."""
        approved = self._approved()
        if server in approved:
            self._keep({name: tools for name, tools in approved.items() if name != server})

    def _approved(self) -> Approved:
        path = self._path.with_name("mcp-approved.json")
        return read_document(path, dict[str, dict[str, str]]) if path.exists() else {}

    def _keep(self, approved: Approved) -> None:
        path = self._path.with_name("mcp-approved.json")
        write_private(path, msgspec.json.format(msgspec.json.encode(approved)) + b"\n")

    def _start(self, named: Mapping[str, McpServer]) -> dict[str, Tool]:
        from septet.wiring.mcp_transports import Transports

        portal = self._opened.enter_context(start_blocking_portal())
        transports = Transports(self.folder, self._visit)
        tools: dict[str, Tool] = {}
        for name, entry in named.items():
            connection = Connection(name, entry, portal, transports)
            self._opened.callback(connection.close)
            for tool in self._usable(connection, connection.listed()):
                tools[free_name(tool.name, tools)] = tool
        return {name: renamed(tool, name) for name, tool in tools.items()}

    def _usable(self, connection: "Connection", listed: "Sequence[ListedTool]") -> list[Tool]:
        """The tools that the person has approved as they are. What a server says when it is first seen counts as
        approved, except what means to steer the model.
        """
        server, approved = connection.name, self._approved().get(connection.name)
        usable: list[Tool] = []
        first: list[FoundTool] = []
        for one in listed[:MAX_TOOLS]:
            found = found_tool(server, one)
            why = "" if approved and approved.get(one.name) == found.digest else doubt(found, one, approved)
            self.found.append(replace(found, why=why))
            if why:
                logging.getLogger("septet").warning(
                    "septet: the tool %s of the MCP server %s is not used (%s): septet mcp approve %s",
                    one.name,
                    server,
                    why,
                    server,
                )
                continue
            usable.append(make_tool(one, connection, found))
            first.append(found)
        if approved is None:
            self.approve(first)
        return usable


def found_tool(server: str, one: "ListedTool") -> FoundTool:
    description = shown_text(one.description or one.name)
    said = msgspec.json.encode(
        [one.name, one.description, msgspec.to_builtins(one.input_schema)], order="sorted"
    )
    return FoundTool(
        server=server,
        name=one.name,
        offered=INVALID_CHARACTERS.sub("_", f"{server}_{one.name}")[:MAX_NAME],
        description=description,
        digest=sha256(said).hexdigest(),
    )


def schema_text(one: "ListedTool") -> str:
    return msgspec.json.encode(msgspec.to_builtins(one.input_schema)).decode()


def shown_text(text: str) -> str:
    """A description without what a person would not see."""
    return HIDDEN_CHARACTERS.sub("", text)[:MAX_DESCRIPTION]


def doubt(found: FoundTool, one: "ListedTool", approved: Mapping[str, str] | None) -> str:
    """Why a tool that is not approved as it is waits for the person; empty if it does not."""
    said = f"{one.name} {one.description or ''} {schema_text(one)}"
    if HIDDEN_CHARACTERS.search(one.description or "") or HIDDEN_CHARACTERS.search(schema_text(one)):
        return "its description has characters that nobody sees"
    if match := INSTRUCTIONS.search(said):
        return f"its description gives orders: '{match[0][:60]}'"
    if approved is None:
        return ""
    return "it is new" if found.name not in approved else "it has changed since you approved it"


def free_name(name: str, taken: Mapping[str, object]) -> str:
    """The name, with a number if another tool has it."""
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name[: MAX_NAME - len(str(number)) - 1]}_{number}"
    return free


def renamed(tool: Tool, name: str) -> Tool:
    from dataclasses import replace as replaced

    return replaced(tool, name=name)


class Connection:
    """One server: started, asked, and started again if it has died."""

    def __init__(self, name: str, entry: McpServer, portal: BlockingPortal, transports: "Transports") -> None:
        self.name = name
        self.entry = entry
        self._portal = portal
        self._transports = transports
        self._opened = ExitStack()
        self._client: Client | None = None
        self._starts = 0
        self._digests: dict[str, str] = {}

    def close(self) -> None:
        self._client = None
        opened, self._opened = self._opened, ExitStack()
        opened.close()

    def listed(self) -> "Sequence[ListedTool]":
        """Start the server, and list its tools. Raises BadConfig."""
        try:
            tools = self._list(self._start())
        except SeptetError:
            raise
        except Exception as error:  # any failure of a third-party program becomes one line
            if isinstance(innermost(error), SeptetError):
                raise innermost(error) from error
            cause = f"the MCP server '{self.name}' does not work ({error_line(error)})"
            raise BadConfig(cause, f"{self.entry.start_hint}, or: septet mcp rm {self.name}") from error
        self._digests = {one.name: found_tool(self.name, one).digest for one in tools}
        return tools

    def _start(self) -> "Client":
        self._starts += 1
        opening = self._transports.open(self.name, self.entry)
        self._client = client = self._opened.enter_context(self._portal.wrap_async_context_manager(opening))
        return client

    def _list(self, client: "Client") -> "list[ListedTool]":
        """Every page of the list, up to a bound."""
        page = self._portal.call(client.list_tools)
        found = list(page.tools)
        for _ in range(MAX_PAGES):
            if not page.next_cursor or len(found) > MAX_TOOLS:
                return found
            page = self._portal.call(partial(client.list_tools, cursor=page.next_cursor))
            found += page.tools
        raise BadConfig(
            f"the MCP server '{self.name}' lists its tools without an end", f"septet mcp rm {self.name}"
        )

    def call(self, tool: str, arguments: Mapping[str, object]) -> "CallToolResult":
        """Ask the server; one that has died is started again for the next call, if it offers the tool unchanged."""
        client = self._client or self._restarted(tool)

        async def ask() -> "CallToolResult":
            return await client.call_tool(tool, dict(arguments))

        try:
            return self._portal.call(ask)
        except Exception as error:
            if is_gone(error):
                self.close()
            raise

    def _restarted(self, tool: str) -> "Client":
        if self._starts >= MAX_STARTS:
            raise RuntimeError(f"the MCP server '{self.name}' has died {self._starts} times")
        client = self._start()
        now = {one.name: found_tool(self.name, one).digest for one in self._list(client)}
        if now.get(tool) != self._digests.get(tool):
            self.close()
            raise RuntimeError(
                f"the MCP server '{self.name}' says something else of {tool} since it was started again"
            )
        return client


def is_gone(error: BaseException) -> bool:
    """Whether the connection is closed, and not just this call refused."""
    import anyio
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    found = innermost(error)
    if isinstance(found, MCPError):
        return found.error.code == CONNECTION_CLOSED
    return isinstance(found, anyio.ClosedResourceError | anyio.BrokenResourceError | OSError)


def make_tool(one: "ListedTool", connection: Connection, found: FoundTool) -> Tool:
    async def call(arguments: Mapping[str, object]) -> str | Refusal:
        try:
            result = await to_thread.run_sync(connection.call, one.name, arguments, abandon_on_cancel=True)
            return tool_result_text(result)
        except Exception as error:  # third-party program: its errors go to the model
            return Refusal(reason=f"{one.name} failed: {error_line(error)}")

    said = f"(From the MCP server {connection.name}, which describes it so:) {found.description}"
    parameters = msgspec.json.decode(HIDDEN_CHARACTERS.sub("", schema_text(one)), type=dict[str, object])
    offered = ToolOffer(name=found.offered, description=said, parameters=parameters)
    return mcp_tool(offered, make_validator(one.input_schema), call, connection.entry.roles)


Rule = Callable[..., Iterator["ValidationError"]]
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
PATTERNS = ("pattern", "patternProperties", "unevaluatedProperties")


def make_validator(schema: Mapping[str, object]) -> Callable[[Mapping[str, object]], str]:
    def check(arguments: Mapping[str, object]) -> str:
        errors = sorted(
            bounded_validator(schema).iter_errors(msgspec.to_builtins(arguments)),
            key=lambda error: list(map(str, error.path)),
        )
        return "; ".join(f"{error.json_path}: {error.message}" for error in errors[:5])

    return check


def bounded_validator(schema: Mapping[str, object]) -> "Validator":
    """Checks values by the schema of a server, which may be hostile: no address is read, no pattern is tried."""
    from jsonschema.validators import (
        create,  # pyright: ignore[reportUnknownVariableType]  # its stubs leave a type out
        validator_for,
    )
    from referencing import Registry

    kind = validator_for(schema)
    bounded = create(kind.META_SCHEMA, bounded_rules(kind.VALIDATORS), type_checker=kind.TYPE_CHECKER)
    return bounded(schema, registry=Registry())


def bounded_rules(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """Rules that cannot take forever: patterns are left to the server, and references are counted."""
    left = count(MAX_REFERENCES, -1)

    def counted(rule: Rule) -> Rule:
        def follow(*given: object) -> Iterator["ValidationError"]:
            if next(left) <= 0:
                raise ValueError("its schema refers to itself too often")
            yield from rule(*given) or ()

        return follow

    def additional(
        validator: object, value: object, instance: object, schema: object
    ) -> "Iterator[ValidationError]":
        has_patterns = isinstance(schema, Mapping) and "patternProperties" in schema
        return iter(()) if has_patterns else rules["additionalProperties"](validator, value, instance, schema)

    bounded = {name: counted(rule) if name in REFERENCES else rule for name, rule in rules.items()}
    return {name: rule for name, rule in bounded.items() if name not in PATTERNS} | {
        "additionalProperties": additional
    }


def tool_result_text(result: "CallToolResult") -> str | Refusal:
    """The result as text: texts unchanged, structures as JSON, other content by its kind."""
    parts = [getattr(part, "text", None) or f"({part.type})" for part in result.content]
    if not parts and result.structured_content is not None:
        parts = [msgspec.json.encode(result.structured_content).decode()]
    text = "\n".join(parts)[:MAX_RESULT]
    return Refusal(reason=text or "it failed") if result.is_error else text


def error_line(error: BaseException) -> str:
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return error_line(inner[0]) if inner else f"{type(error).__name__}: {error}"[:300]


Call = Callable[[Mapping[str, object]], Awaitable[Outcome]]
Check = Callable[[Mapping[str, object]], str]
"""Says what is wrong with the arguments; empty if they are valid."""


def mcp_tool(offered: ToolOffer, check: Check, call: Call, roles: Sequence[str] = ()) -> Tool:
    """A tool of an MCP server; not repeatable, because its effects are unknown."""

    async def use(context: ToolContext, arguments: str) -> Outcome:
        wanted = read_arguments(arguments)
        if isinstance(wanted, Refusal):
            return wanted
        trouble = check(wanted)
        return misfit(offered.name, trouble, offered.parameters) if trouble else await call(wanted)

    return Tool(
        offered.name, offered.description, offered.parameters, use, repeatable=False, roles=tuple(roles)
    )
