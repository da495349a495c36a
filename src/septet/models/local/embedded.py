"""`local/NAME`: models that run on this machine. A model's server is started when needed, shared, and replaced if it
dies; its file is downloaded once."""

import os
import sys
from collections.abc import AsyncGenerator
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import anyio
import msgspec

from septet.common.documents import read_document
from septet.common.text import format_size
from septet.domain.messages import Request
from septet.errors import NoModel
from septet.models.credentials import bearer
from septet.models.faults import ConnectionFailed, TimedOut, TransientFault
from septet.models.http import HttpClient
from septet.models.local.catalogue import Weights, WeightsFile, extend_catalogue, find_weights
from septet.models.local.discovery import list_models
from septet.models.local.download import ModelStore, Notify, Progress
from septet.models.local.server import ServerCard, ServerSettings
from septet.models.providers.openai import OpenAIModel
from septet.models.wrappers.early_stop import EarlyStop
from septet.models.wrappers.streams import Item, open_answer
from septet.ports import Model

START_SECONDS = 120.0
POLL_SECONDS = 0.05
SERVER_MODULE = "septet.models.local.server"


class EmbeddedServer:
    """Finds or starts this machine's server for one model; `weights` is the verified file."""

    def __init__(self, entry: Weights, weights: Path, http: HttpClient, idle_seconds: float = 300.0) -> None:
        self._entry = entry
        self._weights = weights
        self._http = http
        self._idle_seconds = idle_seconds

    @property
    def _card_path(self) -> Path:
        return self._weights.with_suffix(".server")

    async def card(self) -> ServerCard:
        """The address and key of the running server; starts one if there is none."""
        if (card := await self._running_server()) is not None:
            return card
        with anyio.move_on_after(START_SECONDS):
            process = self._start()
            while True:
                await anyio.sleep(POLL_SECONDS)
                if (card := await self._running_server()) is not None:
                    return card
                if (code := exit_code(process)) is not None:
                    process = self._start_again(code)
        raise TimedOut(f"the server of local/{self._entry.name} does not start")

    def _start_again(self, code: int) -> int:
        """Start the server again after exit code 0: another process had the lock, and is starting or has ended."""
        if code != 0:
            raise ConnectionFailed(
                f"the server of local/{self._entry.name} ended with {code}, see {self._log}"
            )
        return self._start()

    @property
    def _log(self) -> Path:
        return self._weights.with_suffix(".log")

    async def _running_server(self) -> ServerCard | None:
        try:
            card = msgspec.json.decode(self._card_path.read_bytes(), type=ServerCard)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None
        with anyio.move_on_after(10):
            return (
                card
                if self._entry.name in await list_models(self._http, f"{card.url}/v1", card.key)
                else None
            )
        return None

    def _start(self) -> int:
        settings = ServerSettings(
            name=self._entry.name,
            weights=str(self._weights),
            card=str(self._card_path),
            context=self._entry.context,
            threads=thread_count(),
            idle_seconds=self._idle_seconds,
        )
        command = [sys.executable, "-m", SERVER_MODULE, msgspec.json.encode(settings).decode()]
        log_flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.posix_spawn(
            command[0],
            command,
            {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self._log), log_flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            # It serves other chats too: neither the end of this process nor Ctrl-C in its terminal may end it.
            setsid=True,
        )


def exit_code(process: int) -> int | None:
    """The exit code of a child process; None while it runs."""
    pid, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if pid else None


class EmbeddedModel:
    """Asks this machine's server. If that dies, the request fails with a transient fault; a retry starts it again."""

    def __init__(self, entry: Weights, server: EmbeddedServer, http: HttpClient) -> None:
        self._entry = entry
        self._server = server
        self._http = http
        self._model: OpenAIModel | None = None

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        try:
            async with open_answer(await self._open(), request) as items:
                async for item in items:
                    yield item
        except TransientFault:
            self._model = None
            raise

    async def _open(self) -> OpenAIModel:
        if self._model is None:
            card = await self._server.card()
            address = f"{card.url}/v1/chat/completions"
            self._model = OpenAIModel(address, self._entry.name, bearer(card.key), self._http)
        return self._model


def thread_count() -> int:
    """All cores but one: waiting threads of llama.cpp spin, and other programs need a core."""
    return max(1, (os.cpu_count() or 2) - 1)


def has_runtime() -> bool:
    return hasattr(os, "posix_spawn") and find_spec("xllamacpp") is not None


def check_runtime() -> None:
    if not hasattr(os, "posix_spawn"):
        raise NoModel("embedded models do not run on this system", "use Ollama: ollama/NAME")
    if not has_runtime():
        raise NoModel("the program that runs embedded models is not installed", "install 'septet[local]'")


class EmbeddedModels:
    """The embedded models: those in the catalogue and those in the person's file `own`."""

    def __init__(self, store: ModelStore, own: Path, http: HttpClient) -> None:
        self.store = store
        self._own = own
        self._http = http

    @cached_property
    def catalogue(self) -> tuple[Weights, ...]:
        return extend_catalogue(read_document(self._own, WeightsFile).weights if self._own.exists() else ())

    def find(self, name: str) -> Weights:
        """The model of that name; the default one if the name is empty."""
        return find_weights(name, self.catalogue)

    def open(self, name: str) -> Model:
        """Open a model. Raises NoModel if it cannot run here or is not downloaded."""
        entry = self.find(name)
        check_runtime()
        if not self.store.has(entry):
            size = f"{format_size(entry.size)}, {entry.licence}"
            raise NoModel(f"{entry.name} is not downloaded ({size})", f"septet models get {entry.name}")
        server = EmbeddedServer(entry, self.store.path(entry), self._http)
        return EarlyStop(EmbeddedModel(entry, server, self._http))

    async def fetch(self, name: str, progress: Progress, notify: Notify) -> Path:
        """Download the file of a model if it is missing."""
        return await self.store.fetch(self.find(name), progress, notify)

    def is_downloaded(self, name: str) -> bool:
        return self.store.has(self.find(name))

    def downloaded_names(self) -> list[str]:
        return [entry.name for entry in self.catalogue if self.store.has(entry)]

    def describe(self, name: str) -> str:
        entry = self.find(name)
        return f"{entry.title}: {format_size(entry.size)}, {entry.licence}"
