"""The model that is chosen when nobody named one, and the reason that is given."""

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from septet.models.http import HttpClient
from septet.models.local.discovery import LocalServer, ServerModels, find_servers
from septet.models.providers.provider import ProviderSettings
from septet.models.table import PROVIDERS
from septet.testing.server import serve_mock
from septet.wiring.models import choose_model_name

pytestmark = pytest.mark.anyio

OLLAMA = ServerModels(
    server=LocalServer(label="Ollama", url="http://127.0.0.1:11434/v1", scheme="ollama"),
    models=("llama3", "qwen2.5-coder:7b"),
)
VLLM = ServerModels(server=LocalServer(label="vLLM", url="http://127.0.0.1:8000/v1"), models=("m",))


@pytest.mark.parametrize(
    ("variables", "found", "embedded", "name", "reason"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, [OLLAMA], ["q"], "anthropic/", "ANTHROPIC_API_KEY is set"),
        ({"OPENAI_API_KEY": "k"}, [], [], "openai/", "OPENAI_API_KEY is set"),
        (
            {"AZURE_OPENAI_ENDPOINT": "https://x", "AZURE_OPENAI_DEPLOYMENT": "mine"},
            [],
            [],
            "azure/mine",
            "AZURE_OPENAI_DEPLOYMENT",
        ),
        ({}, [OLLAMA, VLLM], ["q"], "ollama/qwen2.5-coder:7b", "Ollama runs here"),
        ({}, [VLLM], [], "url:http://127.0.0.1:8000/v1#m", "vLLM runs here"),
        ({}, [], ["q"], "local/q", "it is downloaded"),
    ],
)
def test_the_choice_and_its_reason(
    variables: dict[str, str], found: list[ServerModels], embedded: list[str], name: str, reason: str
) -> None:
    choice = choose_model_name(ProviderSettings(environment=variables), PROVIDERS, found, embedded)
    assert choice is not None
    assert choice.name.startswith(name)
    assert reason in choice.reason


def test_with_nothing_at_all_nothing_is_chosen() -> None:
    assert choose_model_name(ProviderSettings(environment={}), PROVIDERS) is None


async def test_servers_are_found_and_the_silent_and_the_foreign_are_passed_over() -> None:
    async with (
        serve_mock() as server,
        listening(silent) as mute,
        listening(foreign) as other,
        HttpClient() as wire,
    ):
        urls = [f"http://127.0.0.1:{free_port()}/v1", mute, other, server.url]
        with anyio.fail_after(120):
            found = await find_servers(wire, [LocalServer(label=url, url=url) for url in urls], seconds=3)
    assert [one.server.url for one in found] == [server.url]
    assert found[0].models == ("mock",)


async def silent(stream: SocketStream) -> None:
    async with stream:
        await anyio.sleep_forever()


async def foreign(stream: SocketStream) -> None:
    async with stream:
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


@asynccontextmanager
async def listening(handler: Callable[[SocketStream], Awaitable[None]]) -> AsyncGenerator[str, None]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handler)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/v1"
        tasks.cancel_scope.cancel()


def free_port() -> int:
    """A port that nobody listens on."""
    with closing(socket.socket()) as probe_socket:
        probe_socket.bind(("127.0.0.1", 0))
        return probe_socket.getsockname()[1]
