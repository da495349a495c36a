"""Ways to ask a model in tests, and every wire pointed at a mock server."""

from collections.abc import Callable

from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from septet.domain.messages import Answer, Delta, Message, Request, ToolOffer
from septet.models.credentials import bearer, header
from septet.models.encoding import LoadBlob
from septet.models.http import HttpClient
from septet.models.providers.anthropic import AnthropicModel
from septet.models.providers.azure import azure_address, azure_credentials
from septet.models.providers.openai import OpenAIModel
from septet.models.providers.pydantic_ai_model import PydanticAIModel
from septet.ports import Model
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


WIRES: dict[str, Open] = {
    "openai": open_openai,
    "azure": open_azure,
    "anthropic": open_anthropic,
    "pydantic-ai": open_pydantic_ai,
}


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
