"""Ways to ask a model in tests, and every wire pointed at a mock server."""

from collections.abc import Callable

from msgspec.structs import replace
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from septet.domain.messages import Answer, Delta, Message, Request, ToolOffer
from septet.models.credentials import bearer, header
from septet.models.encoding import LoadBlob
from septet.models.http import HttpClient
from septet.models.providers.anthropic import AnthropicModel
from septet.models.providers.azure import azure_address, azure_credentials
from septet.models.providers.openai import OpenAIModel
from septet.models.providers.openai_compatible import open_compatible
from septet.models.providers.provider import Connections, ModelEndpoint
from septet.models.providers.pydantic_ai_model import PydanticAIModel
from septet.models.wrappers.text_protocol import TextProtocol
from septet.ports import Model
from septet.testing.replies import Reply
from septet.testing.server import MockServer

KEY = "sk-test-4711"

WRITE = ToolOffer(
    name="write",
    description="Write a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
)

Open = Callable[[MockServer, HttpClient, LoadBlob | None], Model]


def open_openai(server: MockServer, wire: HttpClient, load: LoadBlob | None = None) -> Model:
    return OpenAIModel(f"{server.url}/chat/completions", "mock", bearer(KEY), wire, load)


def open_azure(server: MockServer, wire: HttpClient, load: LoadBlob | None = None) -> Model:
    address = azure_address(server.url.removesuffix("/v1"), "my-deployment", "2024-10-21")
    return OpenAIModel(address, "my-deployment", azure_credentials(key=KEY), wire, load)


def open_anthropic(server: MockServer, wire: HttpClient, load: LoadBlob | None = None) -> Model:
    return AnthropicModel(f"{server.url}/messages", "mock", header("x-api-key", KEY), wire, load)


def open_pydantic_ai(server: MockServer, wire: HttpClient, load: LoadBlob | None = None) -> Model:
    provider = OpenAIProvider(base_url=server.url, api_key=KEY)
    return PydanticAIModel(OpenAIChatModel("mock", provider=provider), wire, load, read_timeout=0.5)


def open_ollama(server: MockServer, wire: HttpClient, load: LoadBlob | None = None) -> Model:
    address = server.url.replace("/v1", "/ollama/v1")
    endpoint = ModelEndpoint(url=address, model="mock", key=KEY)
    return open_compatible(endpoint, Connections(wire, no_embedded_model, load))


def no_embedded_model(name: str) -> Model:
    raise AssertionError(name)


def open_text_only(server: MockServer, wire: HttpClient, load: LoadBlob | None = None) -> Model:
    """A server that is known to have neither tools nor schemas nor eyes: all of it is said in words."""
    return TextProtocol(open_openai(server, wire, load), frozenset({"tools", "schema", "images"}))


def said_by(kind: str, reply: Reply) -> Reply:
    """The reply as a model at that wire gives it: one without tools writes its calls as blocks."""
    if kind != "text-only" or not reply.calls:
        return reply
    blocks = [
        f'```tool\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n```' for call in reply.calls
    ]
    return replace(reply, text="\n".join([reply.text, *blocks]), calls=())


WIRES: dict[str, Open] = {
    "ollama": open_ollama,
    "openai": open_openai,
    "azure": open_azure,
    "anthropic": open_anthropic,
    "pydantic-ai": open_pydantic_ai,
}


CONTRACT: dict[str, Open] = {**WIRES, "text-only": open_text_only}
"""The wires, and a server without any feature, whose model works by words."""


def question(*texts: str, role: str = "coder", step: int = 1) -> Request:
    """A system text and then turns of user and assistant."""
    roles = ("user", "assistant")
    turns = [Message(role=roles[at % 2], text=text) for at, text in enumerate(texts)]
    system = Message(role="system", text="You write code.")
    return Request(role=role, step=step, messages=(system, *turns))


async def ask(model: Model, request: Request) -> tuple[list[Delta], Answer]:
    """The pieces and the answer; fails unless the answer comes last and once."""
    items = [item async for item in model.answer(request)]
    *pieces, answer = items
    assert isinstance(answer, Answer)
    deltas = [piece for piece in pieces if isinstance(piece, Delta)]
    assert len(deltas) == len(pieces)
    return deltas, answer
