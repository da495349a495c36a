"""Finds the model servers on this machine: asks all at once, with a short timeout."""

from collections.abc import Sequence

import anyio
import msgspec

from septet.common.values import Value
from septet.models.faults import DECODE_ERRORS, Fault
from septet.models.http import HttpClient
from septet.models.providers.openai_compatible import ollama_address
from septet.models.providers.provider import ProviderSettings

TIMEOUT = 0.3


class LocalServer(Value):
    """A kind of server and its default address; `scheme` is the prefix of its model names."""

    label: str
    url: str
    scheme: str = ""

    def name(self, model: str) -> str:
        return f"{self.scheme}/{model}" if self.scheme else f"url:{self.url}#{model}"


class ServerModels(Value):
    server: LocalServer
    models: tuple[str, ...]


class ListedModel(msgspec.Struct):
    id: str


class ModelList(msgspec.Struct):
    data: list[ListedModel]


def known_servers(settings: ProviderSettings) -> tuple[LocalServer, ...]:
    return (
        LocalServer(label="Ollama", url=f"{ollama_address(settings)}/v1", scheme="ollama"),
        LocalServer(label="LM Studio", url="http://127.0.0.1:1234/v1"),
        LocalServer(label="llama.cpp", url="http://127.0.0.1:8080/v1"),
        LocalServer(label="vLLM", url="http://127.0.0.1:8000/v1"),
    )


async def find_servers(
    http: HttpClient, servers: Sequence[LocalServer], key: str = "", seconds: float = TIMEOUT
) -> list[ServerModels]:
    """The servers that answered in time, in the given order, with their models."""
    found: dict[str, ServerModels] = {}

    async def ask(server: LocalServer) -> None:
        with anyio.move_on_after(seconds):
            models = await list_models(http, server.url, key)
            if models:
                found[server.url] = ServerModels(server=server, models=models)

    async with anyio.create_task_group() as tasks:
        for server in servers:
            tasks.start_soon(ask, server)
    return [found[server.url] for server in servers if server.url in found]


async def list_models(http: HttpClient, url: str, key: str) -> tuple[str, ...]:
    """The models that a server lists; empty if something else listens there."""
    try:
        body = await http.get(f"{url}/models", {"Authorization": f"Bearer {key}"} if key else {})
        return tuple(entry.id for entry in msgspec.json.decode(body, type=ModelList).data)
    except (Fault, *DECODE_ERRORS):
        return ()
