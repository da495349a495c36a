"""What a person is told when a server of theirs does not answer."""

from septet.settings.mcp_file import McpServer


def test_who_cannot_be_reached_is_to_be_tried_by_hand() -> None:
    assert McpServer(command="npx").start_hint == "try `npx` yourself"
    assert McpServer(url="https://x/mcp").start_hint == "is https://x/mcp right?"
