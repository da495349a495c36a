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
from septet.models.choice import Choice, Known, Overview, amount, choose, nothing, unfetched
from septet.models.credentials import KeyFile, bearer, header
from septet.models.embeddings import Embedder
from septet.models.encoding import Loader
from septet.models.http import LONGEST_ANSWER, Wire
from septet.models.local.catalogue import CATALOGUE, OwnWeights, Weights, weights, with_own
from septet.models.local.discovery import Found, known_servers, probe
from septet.models.local.download import PUBLIC_INDEX, Progress, Shelf
from septet.models.local.embedded import EmbeddedModel, EmbeddedServer, check_runtime, runtime_is_here
from septet.models.names import KEY_VARIABLES, Endpoint, Surroundings, resolve
from septet.models.providers.anthropic import AnthropicModel
from septet.models.providers.azure import API_VERSION, azure_address, azure_credentials, azure_model
from septet.models.providers.openai import OpenAIModel
from septet.models.providers.replay import open_replay
from septet.models.providers.scripted import ScriptedModel, load_script
from septet.models.wrappers.argument_repair import RepairingArguments
from septet.models.wrappers.context_limit import Briefer
from septet.models.wrappers.debug_tap import Overhear, Overheard
from septet.models.wrappers.early_stop import Concise
from septet.models.wrappers.errors import Reporting
from septet.models.wrappers.fallback import Fallback, Tell
from septet.models.wrappers.pricing import Priced, listed_price, unpriced
from septet.models.wrappers.recording import Recording, Tape
from septet.models.wrappers.retry import Patience, Retrying, Timed
from septet.models.wrappers.text_protocol import InWords
from septet.models.wrappers.usage import Counted
from septet.ports import Model
from septet.settings.group_chats import adopted, read_group_chat
from septet.settings.home import Home


def sturdy(models: Sequence[tuple[str, Model]], patience: Patience, tell: Tell) -> Model:
    """A model that finishes undamaged or stops resumable, whatever its service does.

    Every attempt at a smaller or repaired request is itself retried; only a model that still fails gives
    way to the next one.
    """
    each = [
        (
            name,
            Priced(
                RepairingArguments(Briefer(Retrying(Timed(InWords(Counted(model))), patience, tell))), name
            ),
        )
        for name, model in models
    ]
    first = each[0][1] if len(each) == 1 else Fallback(each, tell)
    return Reporting(first, models[0][0])


CANDIDATES = 3
EMBEDDINGS = "SEPTET_EMBEDDINGS"
LONGEST = "SEPTET_LONGEST_ANSWER"
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
        patience: Patience | None = None,
    ) -> None:
        self._environment = environment
        self.overhear: Overhear | None = None
        self._tape: Tape | None = None
        self._load = load
        self._patience = patience or Patience()
        self.keys = KeyFile(home.config / "keys.json")
        self._own_weights = home.config / "models.yaml"
        self._wire = Wire(longest_answer=longest_answer(environment))
        index = environment.get("UV_DEFAULT_INDEX") or environment.get("PIP_INDEX_URL") or PUBLIC_INDEX
        self.shelf = Shelf(home.cache / "models", self._wire, index)

    async def __aenter__(self) -> "Models":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._wire.aclose()

    @cached_property
    def catalogue(self) -> tuple[Weights, ...]:
        """The embedded models: those that are known here, and those of the person's own file."""
        path = self._own_weights
        return with_own(read_document(path, OwnWeights).weights if path.exists() else ())

    def adopt(self, config: Path) -> None:
        """What a group chat's file says of its provider holds where the environment says nothing."""
        if config.exists():
            added = adopted(read_group_chat(config), self._environment)
            self._environment = {**self._environment, **added}

    def open(self, names: Sequence[str]) -> Model:
        """The model that these names stand for: the first one answers, the others stand in for it."""
        if not any(names):
            raise NoModel("no model was chosen", "pass -m NAME, or watch one at work: septet demo")
        model = rehearsal(names[0]) or sturdy(
            [(name, self._opened(name)) for name in names], self._patience, warn
        )
        model = Recording(model, self._tape) if self._tape else model
        return Overheard(model, self.overhear) if self.overhear else model

    async def check_price(self, names: Iterable[str]) -> None:
        """Raises BadUsage where somebody has to say what a model costs."""
        for name in names:
            known = rehearsal_of(name) or await to_thread.run_sync(listed_price, Usage(), name) is not None
            if not known:
                raise unpriced(name)

    def record(self, path: Path) -> None:
        """Write every answer of models that are opened from now on to a file that `replay:` reads."""
        self._tape = Tape(path, self.secrets())

    def secrets(self) -> list[str]:
        """What must not be given away: the keys that are kept, and variables that are named like one."""
        named = (value for name, value in self._environment.items() if SECRET_NAME.search(name))
        return [*self._around().keys.values(), *named]

    def _opened(self, name: str) -> Model:
        endpoint = resolve(name, self._around())
        if endpoint.wire == "pydantic-ai":
            return self._by_library(endpoint.model)
        return self._embedded(endpoint.model) if endpoint.wire == "local" else self._wired(endpoint)

    def _by_library(self, name: str) -> Model:
        try:
            from septet.models.providers.pydantic_ai import open_pydantic_ai
        except ImportError as error:
            raise NoModel("pydantic-ai is not installed", "install 'septet[providers]'") from error
        return open_pydantic_ai(name, self._wire, self._load)

    def _wired(self, endpoint: Endpoint) -> Model:
        if endpoint.wire == "anthropic":
            credentials = header("x-api-key", endpoint.key)
            return AnthropicModel(
                f"{endpoint.url}/v1/messages", endpoint.model, credentials, self._wire, self._load
            )
        if endpoint.wire == "azure":
            address = azure_address(endpoint.url, endpoint.model, endpoint.version or API_VERSION)
            credentials = azure_credentials(endpoint.key, endpoint.token)
            return azure_model(address, endpoint.model, credentials, self._wire, self._load)
        address = f"{endpoint.url}/chat/completions"
        return OpenAIModel(address, endpoint.model, bearer(endpoint.key), self._wire, self._load)

    def _embedded(self, name: str) -> Model:
        entry = self.weights(name)
        check_runtime()
        if not self.shelf.has(entry):
            size = f"{amount(entry.size)}, {entry.licence}"
            raise NoModel(f"{entry.name} is not here yet ({size})", f"septet models get {entry.name}")
        server = EmbeddedServer(entry, self.shelf.path(entry), self._wire)
        return Concise(EmbeddedModel(entry, server, self._wire))

    def check_embedded(self) -> None:
        """Raises NoModel where no embedded model could run, before anything is fetched."""
        check_runtime()

    def without_runtime(self) -> str:
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
        endpoint = resolve(name, self._around())
        if endpoint.wire != "openai":
            raise BadConfig(
                f"{EMBEDDINGS} names '{name}', which has no vectors", "use openai/…, ollama/… or url:…"
            )
        return Embedder(f"{endpoint.url}/embeddings", endpoint.model, bearer(endpoint.key), self._wire)

    def weights(self, name: str) -> Weights:
        """The embedded model of that name; the best small one for no name."""
        return weights(name, self.catalogue)

    async def fetch(self, name: str, progress: Progress, tell: Tell) -> Path:
        """The file of an embedded model, fetched unless it is here."""
        return await self.shelf.fetch(self.weights(name), progress, tell)

    def fetched(self) -> list[str]:
        return [entry.name for entry in self.catalogue if self.shelf.has(entry)]

    async def found(self) -> list[Found]:
        """The model servers of this machine."""
        return await probe(self._wire, known_servers(self._around()))

    async def choose(self, offer_embedded: bool = False) -> Choice:
        """What to think with when nobody said, and why. Raises NoModel where there is nothing.

        `offer_embedded` lets an embedded model be chosen that has yet to be fetched.
        """
        around = self._around()
        choice = choose(around, (), ()) or choose(around, await self.found(), self.fetched())
        if choice is None and offer_embedded and runtime_is_here():
            choice = unfetched(CATALOGUE[0].name)
        if choice is None:
            raise nothing()
        return choice

    def is_here(self, name: str) -> bool:
        return self.shelf.has(self.weights(name))

    def about(self, name: str) -> str:
        entry = self.weights(name)
        return f"{entry.title}: {amount(entry.size)}, {entry.licence}"

    async def overview(self) -> Overview:
        """What there is to think with, and what would be chosen."""
        found, around = await self.found(), self._around()
        served = [
            Known(name=one.server.name(model), about=one.server.label)
            for one in found
            for model in one.models
        ]
        embedded = [
            Known(name=f"local/{entry.name}", about=self.about(entry.name), here=self.shelf.has(entry))
            for entry in self.catalogue
        ]
        return Overview(
            models=(*served, *embedded),
            keys=tuple(provider for provider in KEY_VARIABLES if around.key(provider)),
            chosen=choose(around, found, self.fetched()),
        )

    def _around(self) -> Surroundings:
        return Surroundings(environment=self._environment, keys=self.keys.read())


def longest_answer(environment: Mapping[str, str]) -> int:
    """Bytes, by a variable that counts in MiB."""
    given = environment.get(LONGEST, "").strip()
    if not given:
        return LONGEST_ANSWER
    if not given.isdecimal() or not 0 < int(given) <= 1024:
        raise BadConfig(f"{LONGEST} is '{given[:40]}'", "write how many MiB an answer may have, 1 to 1024")
    return int(given) << 20


def rehearsal_of(name: str) -> bool:
    return name.partition(":")[0] in ("scripted", "replay")


def rehearsal(name: str) -> Model | None:
    """A model whose words are written already; it needs no wrappers."""
    scheme, _, rest = name.partition(":")
    if scheme == "scripted" and rest:
        return ScriptedModel(load_script(script_path(rest)), rest.rsplit("/", 1)[-1].removesuffix(".yaml"))
    if scheme == "replay" and rest:
        return open_replay(rest)
    return None


def script_path(rest: str) -> Path:
    return DEMOS / f"{rest.removeprefix('demo/')}.yaml" if rest.startswith("demo/") else Path(rest)


def settled_name(name: str) -> str:
    """A name that means the same from any folder and after any restart: it goes into the log."""
    scheme, _, rest = name.partition(":")
    if scheme in ("scripted", "replay") and rest and not rest.startswith("demo/"):
        return f"{scheme}:{Path(rest).expanduser().absolute()}"
    return f"local/{CATALOGUE[0].name}" if name in ("local", "local/") else name


def suited(member: RoleSpec) -> RoleSpec:
    """A member with the help that its model needs: short forms, and several draws for a coder."""
    if not any(name.startswith("local/") for name in member.model):
        return member
    candidates = CANDIDATES if member.role == "coder" and member.candidates == 1 else member.candidates
    temperature = 0.0 if member.temperature is None else member.temperature
    return replace(member, form="small", candidates=candidates, temperature=temperature)


def warn(text: str) -> None:
    logging.getLogger("septet.models").warning("septet: %s", text)
