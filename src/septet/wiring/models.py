"""The wrappers around a model, in the order that makes them right."""

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from anyio import to_thread
from msgspec.structs import replace

from septet.common.documents import read_document
from septet.domain.messages import Usage
from septet.domain.teams import RoleSpec
from septet.errors import BadConfig, NoModel
from septet.models.choice import (
    Choice,
    ModelEntry,
    Overview,
    choose,
    choose_download,
    format_size,
    no_model_found,
)
from septet.models.credentials import KeyFile, bearer, header
from septet.models.embeddings import Embedder
from septet.models.encoding import Loader
from septet.models.http import MAX_ANSWER_BYTES, HttpClient
from septet.models.local.catalogue import CATALOGUE, Weights, WeightsFile, extend_catalogue, find_weights
from septet.models.local.discovery import ServerModels, find_servers, known_servers
from septet.models.local.download import PUBLIC_INDEX, ModelStore, Progress
from septet.models.local.embedded import EmbeddedModel, EmbeddedServer, check_runtime, has_runtime
from septet.models.names import KEY_VARIABLES, Endpoint, ProviderSettings, resolve
from septet.models.providers.anthropic import AnthropicModel
from septet.models.providers.azure import API_VERSION, azure_address, azure_credentials, azure_model
from septet.models.providers.openai import OpenAIModel
from septet.models.providers.replay import open_replay
from septet.models.providers.scripted import ScriptedModel, load_script
from septet.models.wrappers.argument_repair import ArgumentRepair
from septet.models.wrappers.context_limit import ContextLimit
from septet.models.wrappers.debug_tap import DebugTap, RequestListener
from septet.models.wrappers.early_stop import EarlyStop
from septet.models.wrappers.errors import ErrorBoundary
from septet.models.wrappers.fallback import Fallback, Notify
from septet.models.wrappers.pricing import Pricing, listed_price, unknown_price
from septet.models.wrappers.recording import Recording, RecordingFile
from septet.models.wrappers.retry import RequestTimeout, Retry, RetryPolicy
from septet.models.wrappers.text_protocol import TextProtocol
from septet.models.wrappers.usage import UsageCheck
from septet.ports import Model
from septet.settings.group_chats import client_environment, read_group_chat
from septet.settings.home import Home


def resilient(models: Sequence[tuple[str, Model]], patience: RetryPolicy, tell: Notify) -> Model:
    """A model that finishes undamaged or stops resumable, whatever its service does.

    Every attempt at a smaller or repaired request is itself retried; only a model that still fails gives
    way to the next one.
    """
    each = [
        (
            name,
            Pricing(
                ArgumentRepair(
                    ContextLimit(Retry(RequestTimeout(TextProtocol(UsageCheck(model))), patience, tell))
                ),
                name,
            ),
        )
        for name, model in models
    ]
    first = each[0][1] if len(each) == 1 else Fallback(each, tell)
    return ErrorBoundary(first, models[0][0])


CANDIDATES = 3
EMBEDDINGS = "SEPTET_EMBEDDINGS"
MAX_ANSWER_VARIABLE = "SEPTET_LONGEST_ANSWER"
SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
"""Variables whose values are in no recording: those of every provider are named so."""
DEMOS = Path(__file__).parents[1] / "demos"


class Models:
    """Everything that opens models; closing it closes their connections.

    `load` gives images by their blob address.
    """

    def __init__(
        self,
        home: Home,
        environment: Mapping[str, str] = os.environ,
        load: Loader | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self._environment = environment
        self.debug_listener: RequestListener | None = None
        self._tape: RecordingFile | None = None
        self._load = load
        self._retry = retry or RetryPolicy()
        self.keys = KeyFile(home.config / "keys.json")
        self._own_weights = home.config / "models.yaml"
        self._http = HttpClient(max_answer_bytes=max_answer_bytes(environment))
        index = environment.get("UV_DEFAULT_INDEX") or environment.get("PIP_INDEX_URL") or PUBLIC_INDEX
        self.store = ModelStore(home.cache / "models", self._http, index)

    async def __aenter__(self) -> "Models":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    @cached_property
    def catalogue(self) -> tuple[Weights, ...]:
        """The embedded models: those that are known here, and those of the person's own file."""
        path = self._own_weights
        return extend_catalogue(read_document(path, WeightsFile).weights if path.exists() else ())

    def adopt(self, config: Path) -> None:
        """What a group chat's file says of its provider holds where the environment says nothing."""
        if config.exists():
            added = client_environment(read_group_chat(config), self._environment)
            self._environment = {**self._environment, **added}

    def open(self, names: Sequence[str]) -> Model:
        """The model that these names stand for: the first one answers, the others stand in for it."""
        if not any(names):
            raise NoModel("no model was chosen", "pass -m NAME, or watch one at work: septet demo")
        model = open_rehearsal(names[0]) or resilient(
            [(name, self._open_one(name)) for name in names], self._retry, warn
        )
        model = Recording(model, self._tape) if self._tape else model
        return DebugTap(model, self.debug_listener) if self.debug_listener else model

    async def check_price(self, names: Iterable[str]) -> None:
        """Raises BadUsage where somebody has to say what a model costs."""
        for name in names:
            known = is_rehearsal(name) or await to_thread.run_sync(listed_price, Usage(), name) is not None
            if not known:
                raise unknown_price(name)

    def record(self, path: Path) -> None:
        """Write every answer of models that are opened from now on to a file that `replay:` reads."""
        self._tape = RecordingFile(path, self.secrets())

    def secrets(self) -> list[str]:
        """What must not be given away: the keys that are kept, and variables that are named like one."""
        named = (value for name, value in self._environment.items() if SECRET_NAME.search(name))
        return [*self._settings().keys.values(), *named]

    def _open_one(self, name: str) -> Model:
        endpoint = resolve(name, self._settings())
        if endpoint.wire == "pydantic-ai":
            return self._open_pydantic_ai(endpoint.model)
        return (
            self._open_embedded(endpoint.model) if endpoint.wire == "local" else self._open_endpoint(endpoint)
        )

    def _open_pydantic_ai(self, name: str) -> Model:
        try:
            from septet.models.providers.pydantic_ai import open_pydantic_ai
        except ImportError as error:
            raise NoModel("pydantic-ai is not installed", "install 'septet[providers]'") from error
        return open_pydantic_ai(name, self._http, self._load)

    def _open_endpoint(self, endpoint: Endpoint) -> Model:
        if endpoint.wire == "anthropic":
            credentials = header("x-api-key", endpoint.key)
            return AnthropicModel(
                f"{endpoint.url}/v1/messages", endpoint.model, credentials, self._http, self._load
            )
        if endpoint.wire == "azure":
            address = azure_address(endpoint.url, endpoint.model, endpoint.version or API_VERSION)
            credentials = azure_credentials(endpoint.key, endpoint.token)
            return azure_model(address, endpoint.model, credentials, self._http, self._load)
        address = f"{endpoint.url}/chat/completions"
        return OpenAIModel(address, endpoint.model, bearer(endpoint.key), self._http, self._load)

    def _open_embedded(self, name: str) -> Model:
        entry = self.weights(name)
        check_runtime()
        if not self.store.has(entry):
            size = f"{format_size(entry.size)}, {entry.licence}"
            raise NoModel(f"{entry.name} is not here yet ({size})", f"septet models get {entry.name}")
        server = EmbeddedServer(entry, self.store.path(entry), self._http)
        return EarlyStop(EmbeddedModel(entry, server, self._http))

    def check_embedded(self) -> None:
        """Raises NoModel where no embedded model could run, before anything is fetched."""
        check_runtime()

    def runtime_error(self) -> str:
        """Why no embedded model could run here now; nothing where one could."""
        try:
            check_runtime()
        except NoModel as error:
            return str(error)
        return ""

    def embedder(self) -> Embedder | None:
        """What gives texts vectors, where the person has named one; off by default."""
        name = self._environment.get(EMBEDDINGS, "").strip()
        if not name:
            return None
        endpoint = resolve(name, self._settings())
        if endpoint.wire != "openai":
            raise BadConfig(
                f"{EMBEDDINGS} names '{name}', which has no vectors", "use openai/…, ollama/… or url:…"
            )
        return Embedder(f"{endpoint.url}/embeddings", endpoint.model, bearer(endpoint.key), self._http)

    def weights(self, name: str) -> Weights:
        """The embedded model of that name; the best small one for no name."""
        return find_weights(name, self.catalogue)

    async def fetch(self, name: str, progress: Progress, tell: Notify) -> Path:
        """The file of an embedded model, fetched unless it is here."""
        return await self.store.fetch(self.weights(name), progress, tell)

    def downloaded(self) -> list[str]:
        return [entry.name for entry in self.catalogue if self.store.has(entry)]

    async def servers(self) -> list[ServerModels]:
        """The model servers of this machine."""
        return await find_servers(self._http, known_servers(self._settings()))

    async def choose(self, offer_embedded: bool = False) -> Choice:
        """What to think with when nobody said, and why. Raises NoModel where there is nothing.

        `offer_embedded` lets an embedded model be chosen that has yet to be fetched.
        """
        around = self._settings()
        choice = choose(around, (), ()) or choose(around, await self.servers(), self.downloaded())
        if choice is None and offer_embedded and has_runtime():
            choice = choose_download(CATALOGUE[0].name)
        if choice is None:
            raise no_model_found()
        return choice

    def is_downloaded(self, name: str) -> bool:
        return self.store.has(self.weights(name))

    def describe(self, name: str) -> str:
        entry = self.weights(name)
        return f"{entry.title}: {format_size(entry.size)}, {entry.licence}"

    async def overview(self) -> Overview:
        """What there is to think with, and what would be chosen."""
        found, around = await self.servers(), self._settings()
        served = [
            ModelEntry(name=one.server.name(model), about=one.server.label)
            for one in found
            for model in one.models
        ]
        embedded = [
            ModelEntry(
                name=f"local/{entry.name}", about=self.describe(entry.name), here=self.store.has(entry)
            )
            for entry in self.catalogue
        ]
        return Overview(
            models=(*served, *embedded),
            keys=tuple(provider for provider in KEY_VARIABLES if around.key(provider)),
            chosen=choose(around, found, self.downloaded()),
        )

    def _settings(self) -> ProviderSettings:
        return ProviderSettings(environment=self._environment, keys=self.keys.read())


def max_answer_bytes(environment: Mapping[str, str]) -> int:
    """Bytes, by a variable that counts in MiB."""
    given = environment.get(MAX_ANSWER_VARIABLE, "").strip()
    if not given:
        return MAX_ANSWER_BYTES
    if not given.isdecimal() or not 0 < int(given) <= 1024:
        raise BadConfig(
            f"{MAX_ANSWER_VARIABLE} is '{given[:40]}'", "write how many MiB an answer may have, 1 to 1024"
        )
    return int(given) << 20


def is_rehearsal(name: str) -> bool:
    return name.partition(":")[0] in ("scripted", "replay")


def open_rehearsal(name: str) -> Model | None:
    """A model whose words are written already; it needs no wrappers."""
    scheme, _, rest = name.partition(":")
    if scheme == "scripted" and rest:
        return ScriptedModel(load_script(script_path(rest)), rest.rsplit("/", 1)[-1].removesuffix(".yaml"))
    if scheme == "replay" and rest:
        return open_replay(rest)
    return None


def script_path(rest: str) -> Path:
    return DEMOS / f"{rest.removeprefix('demo/')}.yaml" if rest.startswith("demo/") else Path(rest)


def absolute_name(name: str) -> str:
    """A name that means the same from any folder and after any restart: it goes into the log."""
    scheme, _, rest = name.partition(":")
    if scheme in ("scripted", "replay") and rest and not rest.startswith("demo/"):
        return f"{scheme}:{Path(rest).expanduser().absolute()}"
    return f"local/{CATALOGUE[0].name}" if name in ("local", "local/") else name


def adapt_to_model(member: RoleSpec) -> RoleSpec:
    """A member with the help that its model needs: short forms, and several draws for a coder."""
    if not any(name.startswith("local/") for name in member.model):
        return member
    candidates = CANDIDATES if member.role == "coder" and member.candidates == 1 else member.candidates
    temperature = 0.0 if member.temperature is None else member.temperature
    return replace(member, form="small", candidates=candidates, temperature=temperature)


def warn(text: str) -> None:
    logging.getLogger("septet.models").warning("septet: %s", text)
