"""Models by name: what `openai/…`, `azure/…`, `ollama/…`, `url:…` and the others stand for. Pure."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal
from urllib.parse import urlsplit

from septet.common.values import Value
from septet.errors import BadConfig, NoModel

Wires = Literal["openai", "azure", "anthropic", "local", "pydantic-ai"]

PROVIDERS = ("openai", "azure", "anthropic", "ollama", "local")
KEY_VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "url": "SEPTET_URL_KEY",
}
OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"
LIBRARY = "pydantic-ai:"
OLLAMA = "http://127.0.0.1:11434"
FORMS = (
    "openai/NAME, azure/DEPLOYMENT, anthropic/NAME, ollama/NAME, local/NAME, url:http://…#NAME, "
    "pydantic-ai:PROVIDER:NAME, scripted:FILE or replay:FILE"
)


class Endpoint(Value):
    """Where a model is and what lets us in; `url` is a whole address for `url:` and a root elsewhere."""

    wire: Wires
    url: str
    model: str
    key: str = ""
    token: str = ""
    version: str = ""


class ProviderSettings(Value):
    """What a name is read with: the environment's variables and the keys that were set before."""

    environment: Mapping[str, str]
    keys: Mapping[str, str] = {}

    def key(self, provider: str) -> str:
        """The vendor's own variable wins over a kept key."""
        variable = KEY_VARIABLES.get(provider, "")
        return self.environment.get(variable, "") or self.keys.get(provider, "")

    @property
    def token(self) -> str:
        return self.environment.get("AZURE_OPENAI_AD_TOKEN", "")

    def variable(self, name: str, default: str = "") -> str:
        return self.environment.get(name, "").strip() or default


def resolve(name: str, around: ProviderSettings) -> Endpoint:
    """The endpoint that a name stands for. Raises NoModel where its key is missing, BadConfig for no name."""
    if name.startswith("url:"):
        return from_url(name, around)
    if name.startswith(LIBRARY):
        return Endpoint(wire="pydantic-ai", url="", model=name.removeprefix(LIBRARY))
    provider, _, model = name.partition("/")
    if provider == "local":
        return Endpoint(wire="local", url="", model=model)
    if provider not in PROVIDERS or not model:
        raise unknown_name(name, provider)
    return {"openai": openai, "azure": azure, "anthropic": anthropic, "ollama": ollama}[provider](
        model, around
    )


def openai(model: str, around: ProviderSettings) -> Endpoint:
    url = around.variable("OPENAI_BASE_URL", OPENAI)
    key = around.key("openai")
    if not key and url == OPENAI:
        raise missing_key("openai")
    return Endpoint(wire="openai", url=url.rstrip("/"), model=model, key=key)


def azure(model: str, around: ProviderSettings) -> Endpoint:
    url = around.variable("AZURE_OPENAI_ENDPOINT")
    if not url:
        raise NoModel(
            "the address of your Azure OpenAI resource is not known",
            "set AZURE_OPENAI_ENDPOINT to https://NAME.openai.azure.com",
        )
    return Endpoint(
        wire="azure",
        url=url.rstrip("/"),
        model=model,
        key=around.key("azure"),
        token=around.variable("AZURE_OPENAI_AD_TOKEN"),
        version=around.variable("OPENAI_API_VERSION"),
    )


def anthropic(model: str, around: ProviderSettings) -> Endpoint:
    key = around.key("anthropic")
    if not key:
        raise missing_key("anthropic")
    url = around.variable("ANTHROPIC_BASE_URL", ANTHROPIC)
    return Endpoint(wire="anthropic", url=url.rstrip("/").removesuffix("/v1"), model=model, key=key)


def ollama(model: str, around: ProviderSettings) -> Endpoint:
    return Endpoint(wire="openai", url=f"{ollama_address(around)}/v1", model=model)


def ollama_address(around: ProviderSettings) -> str:
    """OLLAMA_HOST is a host, perhaps with a port, or an address; 0.0.0.0 is only where it listens."""
    host = around.variable("OLLAMA_HOST", OLLAMA).rstrip("/")
    parts = urlsplit(host if "//" in host else f"http://{host}")
    name = "127.0.0.1" if parts.hostname in (None, "0.0.0.0") else parts.hostname  # noqa: S104  # read, not bound
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{parts.port or 11434}"


def from_url(name: str, around: ProviderSettings) -> Endpoint:
    url, _, model = name.removeprefix("url:").partition("#")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not model:
        raise BadConfig(f"'{name[:80]}' is no address of a model", "write url:http://HOST:PORT/v1#NAME")
    return Endpoint(wire="openai", url=url.rstrip("/"), model=model, key=around.key("url"))


def missing_key(provider: str) -> NoModel:
    return NoModel(
        f"no key for {provider} is known",
        f"set {KEY_VARIABLES[provider]} or run: septet keys set {provider}",
    )


def unknown_name(name: str, provider: str) -> BadConfig:
    near = get_close_matches(provider, PROVIDERS, n=1)
    remedy = f"did you mean '{near[0]}/…'?" if near and near[0] != provider else f"use {FORMS}"
    return BadConfig(f"'{name[:80]}' names no model", remedy)
