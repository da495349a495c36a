"""The table of providers: finds the provider of a model by the prefix of the model's name.

A new provider is one file in `providers/` and one line here. If the person names no model, the first provider in this
order that has a key supplies it.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches

from septet.common.entry_points import plugins
from septet.errors import BadConfig
from septet.models.providers import (
    agent,
    anthropic,
    azure,
    embedded,
    openai,
    openai_compatible,
    pydantic_ai,
    replay,
    scripted,
)
from septet.models.providers.provider import ModelEndpoint, Provider, ProviderSettings

PROVIDERS: tuple[Provider, ...] = (
    azure.PROVIDER,
    anthropic.PROVIDER,
    openai.PROVIDER,
    openai_compatible.OLLAMA,
    embedded.PROVIDER,
    openai_compatible.URL,
    pydantic_ai.PROVIDER,
    scripted.PROVIDER,
    replay.PROVIDER,
    agent.PROVIDER,
)
ENTRY_POINT_GROUP = "septet.providers"


def installed_providers() -> tuple[Provider, ...]:
    """The providers in installed packages."""
    return tuple(provider for provider in plugins(ENTRY_POINT_GROUP) if isinstance(provider, Provider))


def find_provider(name: str, added: Sequence[Provider] = ()) -> tuple[Provider, str]:
    """The provider of a model and the provider's own name for it. Raises BadConfig for an unknown name.

    `added` come before the table. Installed packages come last, because searching them takes time.
    """
    if name.startswith(("http://", "https://")):
        name = f"url:{name}"
    match = _match(name, (*added, *PROVIDERS)) or _match(name, installed_providers())
    if match is None:
        raise unknown_name(name, (*added, *PROVIDERS))
    return match


def resolve(name: str, settings: ProviderSettings, added: Sequence[Provider] = ()) -> ModelEndpoint:
    """The endpoint of a model. Raises NoModel if a key is missing and BadConfig for an unknown name."""
    provider, model = find_provider(name, added)
    return provider.endpoint(model, settings)


def _match(name: str, providers: Sequence[Provider]) -> tuple[Provider, str] | None:
    matches = ((provider, provider.model_in(name)) for provider in providers)
    return next(((provider, model) for provider, model in matches if model is not None), None)


FAMILIES = {
    "gpt": "openai/",
    "o3": "openai/",
    "o4": "openai/",
    "claude": "anthropic/",
    "llama": "ollama/",
    "qwen": "ollama/",
}
"""How names begin that people type without their provider."""


def unknown_name(name: str, providers: Sequence[Provider]) -> BadConfig:
    first = re.split("[/:]", name)[0]
    if meant := next((prefix for start, prefix in FAMILIES.items() if first.lower().startswith(start)), ""):
        return BadConfig(f"'{name[:80]}' is not a model name", f"did you mean '{meant}{name[:80]}'?")
    near = get_close_matches(first, [provider.name for provider in providers], n=1)
    if near and near[0] != first:
        prefix = next(provider.prefix for provider in providers if provider.name == near[0])
        return BadConfig(f"'{name[:80]}' is not a model name", f"did you mean '{prefix}…'?")
    patterns = [provider.name_pattern for provider in providers]
    return BadConfig(
        f"'{name[:80]}' is not a model name", f"use {', '.join(patterns[:-1])} or {patterns[-1]}"
    )
