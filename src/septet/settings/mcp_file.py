"""mcp.json: the MCP servers of the person, in the form that other programs use too."""

from collections.abc import Mapping

from septet.common.values import Value
from septet.domain.runs import Network

SECONDS = 60.0


class McpServer(Value, omit_defaults=True):
    """A server that speaks MCP: a `command` on its standard input and output, or one at a `url`.

    A command runs in the sandbox, unless `unsafe`: without network but `network`, and without files but its own
    folder, what its command line names, `folders` to read and `writes` to write. `roles` may use its tools; without
    any, those who change files.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    network: Network = "off"
    folders: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    unsafe: bool = False
    url: str = ""
    headers: Mapping[str, str] = {}
    client_id: str = ""
    client_secret: str = ""
    issuer: str = ""
    """What a service that registers nobody by itself knows us by. With an `issuer`, its tokens are the program's own
    (client credentials); else the person gives permission.
    """
    roles: tuple[str, ...] = ()
    seconds: float = SECONDS

    @property
    def start_hint(self) -> str:
        return f"try `{self.command}` yourself" if self.command else f"is {self.url} right?"


class McpFile(Value, rename={"servers": "mcpServers"}):
    """The content of mcp.json, in the form that other programs use too."""

    servers: Mapping[str, McpServer] = {}
