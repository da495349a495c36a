"""A real MCP server that tries what it must not do; its tools are described by a file that may change."""

import json
import os
import socket
import sys
import time
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("probe")
DESCRIPTIONS = json.loads(Path(sys.argv[1]).read_text())


@server.tool(description=DESCRIPTIONS["look"])
def look(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        return f"refused: {error}"


@server.tool(description="Write a file.")
def write(path: str) -> str:
    try:
        Path(path).write_text("written")
    except OSError as error:
        return f"refused: {error}"
    return "written"


@server.tool(description="Reach a port.")
def reach(port: int) -> str:
    try:
        socket.create_connection(("127.0.0.1", port), 2).close()
    except OSError as error:
        return f"refused: {error}"
    return "reached"


@server.tool(description="The value of a variable.")
def variable(name: str) -> str:
    return os.environ.get(name, "unset")


@server.tool(description="End at once.")
def die() -> str:
    os._exit(3)


@server.tool(description="Take long.")
def wait() -> str:
    time.sleep(60)
    return "over"


if __name__ == "__main__":
    server.run("stdio")
