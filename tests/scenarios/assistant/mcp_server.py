"""A small real MCP server on standard input and output, by the official package."""

from mcp.server import MCPServer

server = MCPServer("words")
COUNTED: list[str] = []


@server.tool()
def count(text: str, times: int = 1) -> str:
    """Count the words of a text."""
    COUNTED.append(text)
    return f"words: {len(text.split()) * times}, calls: {len(COUNTED)}"


@server.tool()
def fail(reason: str) -> str:
    """Always fails."""
    raise ValueError(reason)


if __name__ == "__main__":
    server.run("stdio")
