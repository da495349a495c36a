"""Chooses the model to use when the person names none, and says why. Pure."""

from collections.abc import Sequence

from septet.common.text import pluralize
from septet.common.values import Value
from septet.errors import NoModel
from septet.models.local.discovery import ServerModels
from septet.models.providers.provider import Choice, Provider, ProviderSettings


def choose_model_name(
    settings: ProviderSettings,
    providers: Sequence[Provider],
    servers: Sequence[ServerModels] = (),
    downloaded: Sequence[str] = (),
) -> Choice | None:
    """A model of a provider with a key, else of a local server, else a downloaded embedded model."""
    return by_provider(settings, providers) or by_server(servers) or by_download(downloaded)


def by_provider(settings: ProviderSettings, providers: Sequence[Provider]) -> Choice | None:
    choices = (provider.default(settings) for provider in providers)
    return next((choice for choice in choices if choice is not None), None)


def by_server(servers: Sequence[ServerModels]) -> Choice | None:
    if not servers:
        return None
    first = servers[0]
    model = next((model for model in first.models if "cod" in model.lower()), first.models[0])
    why = f"{first.server.label} runs here and has {pluralize(len(first.models), 'model')}"
    return Choice(name=first.server.name(model), reason=why)


def by_download(downloaded: Sequence[str]) -> Choice | None:
    if not downloaded:
        return None
    return Choice(
        name=f"local/{downloaded[0]}", reason="it is downloaded, and no key and no server was found"
    )


def choose_download(name: str) -> Choice:
    return Choice(
        name=f"local/{name}", reason="no key and no server was found; it is downloaded once and runs here"
    )


def no_model_found() -> NoModel:
    return NoModel(
        "no model was chosen and none was found (no key, no local server)",
        "set OPENAI_API_KEY or ANTHROPIC_API_KEY, or download the embedded model (1.1 GB, once) with --fetch or "
        "septet models get, or watch septet demo",
    )


class ModelEntry(Value):
    """A model by name; `here` if it need not be downloaded first."""

    name: str
    about: str
    here: bool = True


class Overview(Value, omit_defaults=False):
    """The models that this machine can use; `keys` are the providers for which a key is known."""

    models: tuple[ModelEntry, ...]
    keys: tuple[str, ...]
    chosen: Choice | None

    def lines(self) -> list[str]:
        known = [
            f"{model.name}  {model.about}"
            + (
                ""
                if not model.name.startswith("local/")
                else f"  ({'here' if model.here else download_command(model.name)})"
            )
            for model in self.models
        ]
        with_key = [f"{provider}/…  a key is known" for provider in self.keys]
        choice = self.chosen
        why = f"{choice.name}, because {choice.reason}" if choice else f"none; {no_model_found()}"
        return [*known, *with_key, f"chosen: {why}"]


def download_command(name: str) -> str:
    return f"septet models get {name.removeprefix('local/')}"
