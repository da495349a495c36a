"""Opens models by name, or chooses one: the provider, the wrappers around it, keys, prices and recordings."""

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from msgspec.structs import replace

from septet.common import demo_scripts
from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.teams import RoleSpec
from septet.errors import BadConfig, BadUsage, NoModel
from septet.models.credentials import KeyFile, bearer
from septet.models.embeddings import Embedder
from septet.models.encoding import LoadBlob
from septet.models.faults import AccessDenied, Fault
from septet.models.http import MAX_ANSWER_BYTES, HttpClient
from septet.models.local.discovery import ServerModels, find_servers, known_servers
from septet.models.providers.embedded import DEFAULT_MODEL
from septet.models.providers.provider import Connections, ModelChoice, Provider, ProviderSettings
from septet.models.table import PROVIDERS, find_provider, installed_providers
from septet.models.wrappers.pricing import has_price, unknown_price
from septet.models.wrappers.recording import DebugTap, Recording, RecordingFile, RequestListener
from septet.models.wrappers.retry import RetryPolicy
from septet.models.wrappers.wrapper_stack import Candidate, make_resilient
from septet.ports import Model
from septet.settings.group_chats import client_environment, read_group_chat
from septet.settings.home import Home

if TYPE_CHECKING:
    from septet.models.local.embedded import EmbeddedModels

MODEL_VARIABLE = "SEPTET_MODEL"


def choose_model_name(
    settings: ProviderSettings,
    providers: Sequence[Provider],
    servers: Sequence[ServerModels] = (),
    downloaded: Sequence[str] = (),
) -> ModelChoice | None:
    """The model of SEPTET_MODEL, else of a provider with a key, of a local server, or a downloaded embedded one."""
    return (
        by_variable(settings)
        or by_provider(settings, providers)
        or by_server(servers)
        or by_download(downloaded)
    )


def by_variable(settings: ProviderSettings) -> ModelChoice | None:
    name = settings.environment.get(MODEL_VARIABLE, "").strip()
    return ModelChoice(name=name, reason=f"{MODEL_VARIABLE} names it") if name else None


def by_provider(settings: ProviderSettings, providers: Sequence[Provider]) -> ModelChoice | None:
    choices = (provider.default(settings) for provider in providers)
    return next((choice for choice in choices if choice is not None), None)


def by_server(servers: Sequence[ServerModels]) -> ModelChoice | None:
    if not servers:
        return None
    first = servers[0]
    model = next((model for model in first.models if "cod" in model.lower()), first.models[0])
    why = f"{first.server.label} runs here and has {pluralize(len(first.models), 'model')}"
    return ModelChoice(name=first.server.name(model), reason=why)


def by_download(downloaded: Sequence[str]) -> ModelChoice | None:
    if not downloaded:
        return None
    return ModelChoice(
        name=f"local/{downloaded[0]}", reason="it is downloaded, and no key and no server was found"
    )


def choose_download(name: str) -> ModelChoice:
    return ModelChoice(
        name=f"local/{name}", reason="no key and no server was found; it is downloaded once and runs here"
    )


def no_model_found() -> NoModel:
    return NoModel(
        "no model was found (no API key, no local model server)",
        "run septet login openai or set OPENAI_API_KEY (anthropic likewise), or download the built-in model "
        "(1.1 GB, once) with septet models get or --fetch, or watch septet demo clock",
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
    chosen: ModelChoice | None

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


CANDIDATES = 16
KEY_CHECK_SECONDS = 10.0
EMBEDDINGS = "SEPTET_EMBEDDINGS"
MAX_ANSWER_VARIABLE = "SEPTET_LONGEST_ANSWER"
SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
"""Names of variables whose values are removed from recordings; those of every provider match."""


class Models:
    """Everything that opens models; closing it closes their connections.

    `load` gives images by their blob address; `providers` come before those of the table.
    """

    def __init__(
        self,
        home: Home,
        environment: Mapping[str, str] = os.environ,
        load: LoadBlob | None = None,
        retry: RetryPolicy | None = None,
        providers: Sequence[Provider] = (),
    ) -> None:
        self._environment = environment
        self._providers = tuple(providers)
        self._retry = retry or RetryPolicy()
        self._recording: RecordingFile | None = None
        self.debug_listener: RequestListener | None = None
        self.keys = KeyFile(home.config / "keys.json")
        self._http = HttpClient(max_answer_bytes=max_answer_bytes(environment))
        self._home = home
        self._connections = Connections(self._http, self._open_embedded, load, demo_scripts.FOLDER)

    async def __aenter__(self) -> "Models":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    @cached_property
    def embedded(self) -> "EmbeddedModels":
        """The models that this machine can run itself."""
        from septet.models.local.download import PUBLIC_INDEX, ModelStore
        from septet.models.local.embedded import EmbeddedModels

        variables = self._environment
        index = variables.get("UV_DEFAULT_INDEX") or variables.get("PIP_INDEX_URL") or PUBLIC_INDEX
        store = ModelStore(self._home.cache / "models", self._http, index)
        return EmbeddedModels(store, self._home.config / "models.yaml", self._http)

    def _open_embedded(self, name: str) -> Model:
        return self.embedded.open(name)

    def adopt(self, config: Path) -> None:
        """Use the provider settings of a group chat's file as defaults for the environment."""
        if config.exists():
            added = client_environment(read_group_chat(config), self._environment)
            self._environment = {**self._environment, **added}

    def open(self, names: Sequence[str]) -> Model:
        """Open the model with these names: the first one answers, the others are fallbacks."""
        if not any(names):
            raise NoModel("no model was chosen", "pass -m NAME, or watch one at work: septet demo")
        if find_provider(names[0], self._providers)[0].is_offline:
            model = self._open_candidate(names[0]).model
        else:
            model = make_resilient([self._open_candidate(name) for name in names], self._retry, warn_person)
        model = Recording(model, self._recording) if self._recording else model
        return DebugTap(model, self.debug_listener) if self.debug_listener else model

    def _open_candidate(self, name: str) -> Candidate:
        provider, model = find_provider(name, self._providers)
        endpoint = provider.endpoint(model, self._settings())
        return Candidate(name, provider.open(endpoint, self._connections), provider.billing(model))

    def check_price(self, names: Iterable[str]) -> None:
        """Raise BadUsage if the price of a model is unknown and must be given."""
        for name in names:
            provider, model = find_provider(name, self._providers)
            if not has_price(provider.billing(model)):
                raise unknown_price(name)

    def record(self, path: Path) -> None:
        """Write every answer of models that are opened from now on to a file that `replay:` reads."""
        self._recording = RecordingFile(path, self.secrets())

    def secrets(self) -> list[str]:
        """Secret values: the stored keys, and variables with names like keys."""
        named = (value for name, value in self._environment.items() if SECRET_NAME.search(name))
        return [*self._settings().keys.values(), *named]

    def store_key(self, provider: str, key: str, keyring: bool = False) -> None:
        """Store a key for a provider; an empty one removes it. Raises BadUsage for a provider without keys."""
        self.check_provider(provider)
        self.keys.set(provider, key, keyring)

    def check_provider(self, name: str) -> Provider:
        """Return the provider. Raises BadUsage if it takes no key."""
        known = {provider.name: provider for provider in self._with_keys()}
        if name not in known:
            raise BadUsage(f"'{name}' is not a provider with an API key", f"use one of {', '.join(known)}")
        return known[name]

    def providers_with_keys(self) -> tuple[str, ...]:
        return tuple(provider.name for provider in self._with_keys())

    async def check_key(self, provider: str, key: str) -> str:
        """Ask the provider whether it accepts the key: returns the answer in words.

        Raises BadConfig if it refuses the key, and BadUsage for a provider without keys.
        """
        known = self.check_provider(provider)
        if known.key_check is None or known.key_variable is None:
            return f"{provider} has no free request to check it with"
        environment = {**self._environment, known.key_variable: key}
        check = known.key_check(known.endpoint("", ProviderSettings(environment=environment)))
        try:
            with anyio.fail_after(KEY_CHECK_SECONDS):
                await self._http.get(check.url, check.headers)
        except AccessDenied as error:
            remedy = f"nothing was stored; copy the whole key and repeat: septet login {provider}"
            raise BadConfig(f"{provider} refused the key ({error.cause})", remedy) from error
        except (Fault, TimeoutError) as error:
            return f"not checked ({getattr(error, 'cause', '') or 'no answer in time'})"
        return f"{provider} accepts it"

    def check_runtime(self) -> None:
        """Raise NoModel if no embedded model could run, before anything is downloaded."""
        from septet.models.local.embedded import check_runtime

        check_runtime()

    def runtime_error(self) -> NoModel | None:
        """Why no embedded model could run here now."""
        try:
            self.check_runtime()
        except NoModel as error:
            return error
        return None

    def _with_keys(self) -> list[Provider]:
        everyone = (*self._providers, *PROVIDERS, *installed_providers())
        return [provider for provider in everyone if provider.key_variable]

    def embedder(self) -> Embedder | None:
        """The embedding model, if the person has named one; None by default."""
        name = self._environment.get(EMBEDDINGS, "").strip()
        if not name:
            return None
        provider, model = find_provider(name, self._providers)
        if not provider.has_embeddings:
            raise BadConfig(
                f"{EMBEDDINGS} names '{name}', which has no vectors", "use openai/…, ollama/… or url:…"
            )
        endpoint = provider.endpoint(model, self._settings())
        return Embedder(f"{endpoint.url}/embeddings", endpoint.model, bearer(endpoint.key), self._http)

    async def servers(self) -> list[ServerModels]:
        """The model servers of this machine."""
        return await find_servers(self._http, known_servers(self._settings()))

    async def choose(self, offer_embedded: bool = False) -> ModelChoice:
        """The model to use when nobody named one, and why. Raises NoModel where there is nothing.

        `offer_embedded` lets an embedded model be chosen that has yet to be downloaded.
        """
        settings, providers = self._settings(), (*self._providers, *PROVIDERS)
        choice = choose_model_name(settings, providers) or choose_model_name(
            settings, providers, await self.servers(), self.embedded.downloaded_names()
        )
        if choice is None and offer_embedded and self.runtime_error() is None:
            choice = choose_download(DEFAULT_MODEL)
        if choice is None:
            raise no_model_found()
        return choice

    async def overview(self) -> Overview:
        """The available models, and the one that would be chosen."""
        servers, settings = await self.servers(), self._settings()
        served = [
            ModelEntry(name=one.server.name(model), about=one.server.label)
            for one in servers
            for model in one.models
        ]
        embedded = [
            ModelEntry(
                name=f"local/{entry.name}",
                about=self.embedded.describe(entry.name),
                here=self.embedded.store.has(entry),
            )
            for entry in self.embedded.catalogue
        ]
        providers = (*self._providers, *PROVIDERS)
        return Overview(
            models=(*served, *embedded),
            keys=tuple(provider.name for provider in self._with_keys() if provider.key(settings)),
            chosen=choose_model_name(settings, providers, servers, self.embedded.downloaded_names()),
        )

    def _settings(self) -> ProviderSettings:
        return ProviderSettings(environment=self._environment, keys=self.keys.read())


def max_answer_bytes(environment: Mapping[str, str]) -> int:
    """The limit of an answer in bytes, from a variable in MiB."""
    given = environment.get(MAX_ANSWER_VARIABLE, "").strip()
    if not given:
        return MAX_ANSWER_BYTES
    if not given.isdecimal() or not 0 < int(given) <= 1024:
        raise BadConfig(
            f"{MAX_ANSWER_VARIABLE} is '{given[:40]}'", "write how many MiB an answer may have, 1 to 1024"
        )
    return int(given) << 20


def model_name_starts() -> list[str]:
    """The beginnings of model names, and the embedded models; no server is asked."""
    from septet.models.local.catalogue import CATALOGUE

    names = [*(provider.prefix for provider in PROVIDERS), *(f"local/{entry.name}" for entry in CATALOGUE)]
    return list(dict.fromkeys(names))


def absolute_model_name(name: str) -> str:
    """A model name for the log that is independent of the current folder."""
    try:
        provider, model = find_provider(name)
    except BadConfig:  # the error is raised when the model is opened
        return name
    return f"{provider.prefix}{provider.absolute(model)}"


def adapt_to_model(member: RoleSpec) -> RoleSpec:
    """Adapt a member to its model: with tools, or with short prompts and several candidates."""
    if not any(is_small_model(name) for name in member.model):
        capable = bool(member.model) and all(map(calls_tools, member.model))
        return replace(member, form="tools") if capable and not member.form else member
    candidates = CANDIDATES if member.writes_code and member.candidates == 1 else member.candidates
    temperature = 0.0 if member.temperature is None else member.temperature
    return replace(member, form="small", candidates=candidates, temperature=temperature)


def calls_tools(name: str) -> bool:
    provider = provider_of_name(name)
    return provider is not None and provider.has_tools and provider.uses_tools(provider.model_in(name) or "")


def is_small_model(name: str) -> bool:
    provider = provider_of_name(name)
    return provider is not None and provider.small


def is_offline(name: str) -> bool:
    """Whether the model's answers are written already: nobody reads what it is asked."""
    provider = provider_of_name(name)
    return provider is not None and provider.is_offline


def provider_of_name(name: str) -> Provider | None:
    """Find the provider, also of an installed package; None for a model object of this program."""
    try:
        return find_provider(name)[0]
    except BadConfig:
        return None


def warn_person(text: str) -> None:
    logging.getLogger("septet.models").warning("septet: %s", text)
