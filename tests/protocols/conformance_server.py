"""What MCP's conformance suite wants a server to offer, added to ours: same transport and authentication."""

import base64
import struct
import zlib

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from mcp.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

from septet.protocols.mcp_server import mcp_server
from septet.wiring.chat_runner import ChatService


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    + chunk(b"IEND", b"")
)
WAV = (
    b"RIFF"
    + struct.pack("<I", 38)
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + (b"data" + struct.pack("<I", 2) + b"\x80\x80")
)
IMAGE = ImageContent(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png")
SOUND = AudioContent(type="audio", data=base64.b64encode(WAV).decode(), mime_type="audio/wav")


def embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=text)
    )


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


class Person(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


DEFAULTS: dict[str, object] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
TITLED = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
OPTIONS = ["option1", "option2", "option3"]
ENUMS: dict[str, object] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


def suite_server(service: ChatService, local: bool) -> MCPServer:
    server = mcp_server(service, local)
    add_contents(server)
    add_requests(server)
    add_resources_and_prompts(server)
    return server


def add_contents(server: MCPServer) -> None:
    @server.tool()
    async def test_simple_text() -> list[TextContent]:
        """Text."""
        return [text("This is a simple text response for testing.")]

    @server.tool()
    async def test_image_content() -> list[ImageContent]:
        """A picture."""
        return [IMAGE]

    @server.tool()
    async def test_audio_content() -> list[AudioContent]:
        """A sound."""
        return [SOUND]

    @server.tool()
    async def test_embedded_resource() -> list[EmbeddedResource]:
        """A resource."""
        return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]

    @server.tool(structured_output=False)
    async def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        """Several kinds."""
        found = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
        return [text("Multiple content types test:"), IMAGE, found]

    @server.tool()
    async def test_error_handling() -> str:
        """Fails."""
        raise ToolError("This tool intentionally returns an error for testing")


def add_requests(server: MCPServer) -> None:
    @server.tool()
    async def test_tool_with_progress(ctx: Context) -> str:
        """Tells its progress."""
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100)
            await anyio.sleep(0.05)
        return "it is done"

    @server.tool()
    async def test_sampling(prompt: str, ctx: Context) -> str:
        """Asks the client's model."""
        asked = SamplingMessage(role="user", content=text(prompt))
        said = await ctx.session.create_message([asked], max_tokens=100)  # pyright: ignore[reportDeprecated]  # the suite wants it
        return f"LLM response: {getattr(said.content, 'text', '')}"

    @server.tool()
    async def test_elicitation(message: str, ctx: Context) -> str:
        """Asks the person."""
        said = await ctx.elicit(message, Person)
        return f"User response: action: {said.action}, content: {getattr(said, 'data', None)}"

    @server.tool()
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        """Asks the person, with defaults."""
        said = await ctx.session.elicit_form("Please fill in", DEFAULTS)
        return f"Elicitation completed: action={said.action}, content={said.content}"

    @server.tool()
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        """Asks the person to choose."""
        said = await ctx.session.elicit_form("Please choose", ENUMS)
        return f"Elicitation completed: action={said.action}, content={said.content}"


def add_resources_and_prompts(server: MCPServer) -> None:
    @server.resource("test://static-text", mime_type="text/plain", description="Text")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png", description="Bytes")
    def static_binary() -> bytes:
        return PNG

    @server.resource("test://template/{id}/data", mime_type="application/json", description="By number")
    def template(id: str) -> str:  # noqa: A002  # as the suite calls it
        return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'

    @server.prompt()
    def test_simple_prompt() -> str:
        """Plain."""
        return "This is a simple prompt for testing."

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """With arguments."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803  # as the suite calls it
        """With a resource."""
        found = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [UserMessage(found), UserMessage("Please process the embedded resource above.")]

    @server.prompt()
    def test_prompt_with_image() -> list[Message]:
        """With a picture."""
        return [UserMessage(IMAGE), UserMessage("Please analyze the image above.")]
