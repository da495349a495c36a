"""Which model to think with when nobody named one, and why. Pure."""

from collections.abc import Sequence

from septet.common.text import pluralize
from septet.common.values import Value
from septet.errors import NoModel
from septet.models.local.discovery import ServerModels
from septet.models.names import KEY_VARIABLES, ProviderSettings

DEFAULTS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-5-mini"}
"""What a provider's key alone leads to; -m names another one."""


class Choice(Value):
    name: str
    reason: str


def choose(around: ProviderSettings, found: Sequence[ServerModels], embedded: Sequence[str]) -> Choice | None:
    """A provider with a key, else a server that runs here, else the embedded model if it was fetched."""
    return by_key(around) or by_server(found) or by_download(embedded)


def by_key(around: ProviderSettings) -> Choice | None:
    if around.variable("AZURE_OPENAI_ENDPOINT") and (name := around.variable("AZURE_OPENAI_DEPLOYMENT")):
        return Choice(
            name=f"azure/{name}", reason="AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_DEPLOYMENT are set"
        )
    for provider, model in DEFAULTS.items():
        if around.key(provider):
            variable = KEY_VARIABLES[provider]
            why = f"{variable} is set" if around.variable(variable) else f"a key for {provider} is kept"
            return Choice(name=f"{provider}/{model}", reason=why)
    return None


def by_server(found: Sequence[ServerModels]) -> Choice | None:
    if not found:
        return None
    first = found[0]
    model = next((model for model in first.models if "cod" in model.lower()), first.models[0])
    why = f"{first.server.label} runs here and has {pluralize(len(first.models), 'model')}"
    return Choice(name=first.server.name(model), reason=why)


def by_download(embedded: Sequence[str]) -> Choice | None:
    if not embedded:
        return None
    return Choice(name=f"local/{embedded[0]}", reason="it was fetched before; no key and no server was found")


def choose_download(name: str) -> Choice:
    return Choice(
        name=f"local/{name}", reason="no key and no server was found; it is fetched once and runs here"
    )


def no_model_found() -> NoModel:
    return NoModel(
        "no model was chosen and nothing to think with was found (no key, no local server)",
        "set OPENAI_API_KEY or ANTHROPIC_API_KEY, or fetch the embedded model (1.1 GB, once) with --fetch or "
        "septet models get, or watch septet demo",
    )


class ModelEntry(Value):
    """A model by name; `here` where nothing has to be fetched first."""

    name: str
    about: str
    here: bool = True


class Overview(Value, omit_defaults=False):
    """All that this machine can think with; `keys` are the providers that would let us in."""

    models: tuple[ModelEntry, ...]
    keys: tuple[str, ...]
    chosen: Choice | None

    def lines(self) -> list[str]:
        known = [
            f"{one.name}  {one.about}"
            + (
                ""
                if not one.name.startswith("local/")
                else f"  ({'here' if one.here else download_command(one.name)})"
            )
            for one in self.models
        ]
        let_in = [f"{provider}/…  a key is known" for provider in self.keys]
        choice = self.chosen
        why = f"{choice.name}, because {choice.reason}" if choice else f"none; {no_model_found()}"
        return [*known, *let_in, f"chosen: {why}"]


def download_command(name: str) -> str:
    return f"septet models get {name.removeprefix('local/')}"


def format_size(size: int) -> str:
    """Bytes as people say them."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1e3:.1f} kB"
