"""Servers with the OpenAI API that are not OpenAI: Ollama, and any server at an address."""

import re
from urllib.parse import urlsplit

from septet.common.hosts import is_loopback
from septet.errors import BadConfig
from septet.models.credentials import bearer
from septet.models.providers.openai import CACHE_KEY, OpenAIModel
from septet.models.providers.provider import (
    Billing,
    Connections,
    ModelEndpoint,
    Provider,
    ProviderSettings,
    Variable,
    free,
)

OLLAMA_ADDRESS = "http://127.0.0.1:11434"


def open_compatible(endpoint: ModelEndpoint, connections: Connections) -> OpenAIModel:
    """These servers find a cached prefix without a key, and may reject OpenAI's own parameter for it."""
    url, key = f"{endpoint.url}/chat/completions", bearer(endpoint.key)
    quirks = frozenset({CACHE_KEY})
    return OpenAIModel(url, endpoint.model, key, connections.http, connections.load_image, quirks)


def ollama_address(settings: ProviderSettings) -> str:
    """OLLAMA_HOST is a host, perhaps with a port, or a URL; 0.0.0.0 is where it listens, not where to connect."""
    host = settings.variable("OLLAMA_HOST", OLLAMA_ADDRESS).rstrip("/")
    parts = urlsplit(host if "//" in host else f"http://{host}")
    name = "127.0.0.1" if parts.hostname in (None, "0.0.0.0") else parts.hostname  # noqa: S104  # read, not bound
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{parts.port or 11434}"


def ollama_endpoint(model: str, settings: ProviderSettings) -> ModelEndpoint:
    return ModelEndpoint(url=f"{ollama_address(settings)}/v1", model=model)


def url_endpoint(name: str, settings: ProviderSettings) -> ModelEndpoint:
    url, _, model = name.partition("#")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not model:
        raise BadConfig(
            f"'url:{name[:80]}' is not the address of a model", "write url:http://HOST:PORT/v1#NAME"
        )
    return ModelEndpoint(url=url.rstrip("/"), model=model, key=URL.key(settings))


def url_billing(name: str) -> Billing:
    return "free" if is_loopback(urlsplit(name).hostname or "") else None


PARAMETERS = re.compile(r"[:-](?P<count>\d+(?:\.\d+)?)b\b", re.IGNORECASE)
FEWEST_PARAMETERS = 20
"""Billions of parameters from which a model is trusted with tools: smaller ones do better by sending whole files."""


def is_large(name: str) -> bool:
    """Whether an Ollama model's name tells that it is large; the ones in Ollama's cloud are."""
    counts = [float(found["count"]) for found in PARAMETERS.finditer(name)]
    return name.endswith("cloud") or max(counts, default=0.0) >= FEWEST_PARAMETERS


OLLAMA = Provider(
    name_pattern="ollama/NAME",
    has_tools=True,
    uses_tools=is_large,
    about="Ollama at OLLAMA_HOST",
    open=open_compatible,
    endpoint=ollama_endpoint,
    variables=(Variable(setting="url", name="OLLAMA_HOST", default=OLLAMA_ADDRESS),),
    billing=free,
    has_embeddings=True,
)
URL = Provider(
    name_pattern="url:http://…#NAME",
    has_tools=True,
    about="any other server with the OpenAI API",
    open=open_compatible,
    endpoint=url_endpoint,
    key_variable="SEPTET_URL_KEY",
    billing=url_billing,
    has_embeddings=True,
)
