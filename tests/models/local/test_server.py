"""The process that serves an embedded model, with a library that serves nothing but its counts."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace

import msgspec
import pytest
from models.asking import ask, question

from septet.errors import BadConfig, NoModel
from septet.models.faults import TransientFault
from septet.models.http import HttpClient
from septet.models.local import embedded
from septet.models.local.catalogue import CATALOGUE
from septet.models.local.download import ModelStore
from septet.models.local.embedded import (
    EmbeddedModel,
    EmbeddedModels,
    EmbeddedServer,
    exit_code,
    thread_count,
)
from septet.models.local.server import ServerCard, main, try_lock, wait_until_idle
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock

KEY = "let-me-in"


class Counts:
    """Answers `/metrics` with one page after the other, and the last one again and again."""

    def __init__(self, *pages: str) -> None:
        self.pages = [*pages]
        self.asked = 0
        counts = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                counts.asked += 1
                self.send_response(200 if self.headers["Authorization"] else 401)
                self.end_headers()
                page = counts.pages.pop(0) if len(counts.pages) > 1 else counts.pages[0]
                self.wfile.write(page.encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
                return

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def page(busy: int, waiting: int, tokens: int) -> str:
    return (
        f"llamacpp:requests_processing {busy}\nllamacpp:requests_deferred {waiting}\n"
        f"llamacpp:prompt_tokens_total {tokens}\nllamacpp:tokens_predicted_total 0\n"
    )


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        monkeypatch.setattr("septet.models.local.server.time", self)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize(
    ("pages", "polls"),
    [
        ([page(0, 0, 7)], 5),  # the first page is news
        ([page(0, 0, 7), page(1, 0, 7), page(0, 0, 7)], 6),  # busy
        ([page(0, 0, 7), page(0, 0, 7), page(0, 1, 7), page(0, 0, 7)], 7),  # somebody waits
        ([page(0, 0, 7), page(0, 0, 7), page(0, 0, 8)], 7),  # tokens came meanwhile
    ],
)
def test_a_server_ends_when_nobody_asked_it_for_its_time(clock: Clock, pages: list[str], polls: int) -> None:
    counts = Counts(*pages)
    try:
        wait_until_idle(counts.url, KEY, 4.0)
    finally:
        counts.close()
    assert (counts.asked, clock.slept) == (polls, [1.0] * polls)


def test_it_looks_at_least_every_five_seconds(clock: Clock) -> None:
    counts = Counts(page(0, 0, 7))
    try:
        wait_until_idle(counts.url, KEY, 40.0)
    finally:
        counts.close()
    assert clock.slept == [5.0] * 9


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Stands for xllamacpp: its server is where the counts are."""
    counts = Counts(page(0, 0, 7))
    seen = SimpleNamespace(params=[], cards=[])

    class Server:
        listening_address = counts.url

        def __init__(self, params: object) -> None:
            seen.params.append(params)

    module = ModuleType("xllamacpp")
    setattr(module, "Server", Server)  # noqa: B010  # the name is the library's
    parts = ("model", "cpuparams", "cpuparams_batch")
    made = lambda: SimpleNamespace(**{part: SimpleNamespace() for part in parts})  # noqa: E731  # the library's
    setattr(module, "CommonParams", made)  # noqa: B010  # as above
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    yield seen
    counts.close()


def settings(card: Path) -> str:
    return json.dumps(
        {"name": "m", "weights": "/models/m.gguf", "card": str(card), "context": 99, "slots": 3, "threads": 2}
    )


def test_the_process_tells_its_address_and_key_to_its_owner_alone_while_it_serves(
    tmp_path: Path, library: SimpleNamespace, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, sleep = tmp_path / "m.server", clock.sleep

    def look(seconds: float) -> None:
        library.cards.append((card.stat().st_mode & 0o777, card.read_bytes()))
        sleep(seconds)

    monkeypatch.setattr(clock, "sleep", look)
    before = os.umask(0)
    try:
        assert main(settings(card)) == 0
    finally:
        os.umask(before)
    mode, content = library.cards[0]
    told = msgspec.json.decode(content, type=ServerCard)
    (params,) = library.params
    assert (mode, told.pid, params.api_keys) == (0o600, os.getpid(), [told.key])
    assert len(told.key) == 32
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.lock"], "the card has gone with the server"
    assert (tmp_path / "m.lock").stat().st_mode & 0o777 == 0o600
    cpu = (params.cpuparams.n_threads, params.cpuparams_batch.n_threads)
    assert (params.model.path, params.model_alias, params.n_ctx, params.n_parallel, cpu) == (
        "/models/m.gguf",
        {"m"},
        99,
        3,
        (2, 2),
    )
    assert (params.hostnames, params.port, params.ui, params.cors_origins) == (["127.0.0.1"], 0, False, "")
    assert (params.kv_unified, params.endpoint_metrics) == (True, True)


def test_a_second_process_leaves_the_serving_to_the_first(tmp_path: Path, library: SimpleNamespace) -> None:
    lock = try_lock(tmp_path / "m.lock")
    assert lock is not None
    assert try_lock(tmp_path / "m.lock") is None
    assert main(settings(tmp_path / "m.server")) == 0
    assert library.params == []
    os.close(lock)
    again = try_lock(tmp_path / "m.lock")
    assert again is not None
    os.close(again)


@pytest.mark.parametrize(("cores", "threads"), [(None, 1), (1, 1), (2, 1), (8, 7)])
def test_one_core_is_left_to_others(cores: int | None, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert thread_count() == threads


def test_a_child_that_runs_has_no_exit_code_yet() -> None:
    read, write = os.pipe()
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(3)"],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, read, 0), (os.POSIX_SPAWN_CLOSE, write)],
    )
    os.close(read)
    assert exit_code(child) is None
    os.close(write)
    while (code := exit_code(child)) is None:
        os.sched_yield()
    assert code == 3


def test_the_server_is_started_apart_from_this_process_and_its_words_go_to_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[list[str], dict[str, str], bool]] = []

    def spawn(
        path: str, command: list[str], environment: dict[str, str], *, file_actions: object, setsid: bool
    ) -> int:
        assert path == sys.executable
        log = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        assert file_actions == [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(tmp_path / "m.log"), log, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        seen.append((command, environment, setsid))
        return 4711

    monkeypatch.setattr(os, "posix_spawn", spawn)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    server = EmbeddedServer(CATALOGUE[0], tmp_path / "m.gguf", HttpClient(), 60.0)
    assert server._start() == 4711  # pyright: ignore[reportPrivateUsage]  # what it asks of the system
    [(command, environment, apart)] = seen
    assert (apart, environment["OMP_WAIT_POLICY"]) == (True, "PASSIVE")
    assert command[1:3] == ["-m", "septet.models.local.server"]
    assert json.loads(command[3]) == {
        "name": CATALOGUE[0].name,
        "weights": str(tmp_path / "m.gguf"),
        "card": str(tmp_path / "m.server"),
        "context": CATALOGUE[0].context,
        "threads": 2,
        "idle_seconds": 60.0,
    }


@pytest.mark.anyio
async def test_the_server_is_looked_for_once_and_again_after_it_failed() -> None:
    asked: list[str] = []
    async with (
        serve_mock(
            in_order(Reply(text="a"), Reply(text="b"), Reply(text="c")), faults={2: "truncated"}
        ) as server,
        HttpClient() as http,
    ):

        class Found:
            async def card(self) -> ServerCard:
                asked.append("card")
                return ServerCard(url=server.url.removesuffix("/v1"), key=KEY, pid=1)

        model = EmbeddedModel(CATALOGUE[0], Found(), http)  # pyright: ignore[reportArgumentType]  # where it is
        await ask(model, question("go"))
        with pytest.raises(TransientFault):
            await ask(model, question("go"))
        assert asked == ["card"]
        await ask(model, question("go"))
        await ask(model, question("go"))
    assert asked == ["card", "card"]


def models(folder: Path) -> EmbeddedModels:
    http = HttpClient()
    return EmbeddedModels(ModelStore(folder, http), folder / "models.yaml", http)


def test_a_model_that_is_not_downloaded_is_refused_with_its_size_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, first = models(tmp_path), CATALOGUE[0]
    monkeypatch.setattr(embedded, "has_runtime", lambda: True)
    with pytest.raises(NoModel, match=rf"{first.name} is not downloaded \(.*GB|MB.*\).*septet models get"):
        known.open("")
    assert known.describe("").startswith(f"{first.title}: ")
    assert known.describe("").endswith(f", {first.licence}")
    assert (known.is_downloaded(first.name), known.downloaded_names()) == (False, [])
    with (tmp_path / f"{first.name}.gguf").open("wb") as file:
        file.truncate(first.size)
    assert (known.is_downloaded(first.name), known.downloaded_names()) == (True, [first.name])
    assert known.open(first.name)
    with pytest.raises(BadConfig):
        known.open("nobody")


def test_what_is_missing_to_run_a_model_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "find_spec", dict[str, object]().get)
    with pytest.raises(NoModel, match=r"install 'septet\[local\]'"):
        models(tmp_path).open("")
    monkeypatch.delattr(os, "posix_spawn")
    with pytest.raises(NoModel, match=r"do not run on this system.*Ollama"):
        models(tmp_path).open("")


def test_a_persons_own_models_are_known_too(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(
        f"weights:\n- name: mine\n  title: Mine\n  licence: MIT\n  size: 5000000\n  sha256: '{'0' * 64}'\n"
        "  sources:\n  - type: hub\n    url: http://127.0.0.1:9/mine.gguf\n"
    )
    assert models(tmp_path).find("mine").title == "Mine"
    assert models(tmp_path).describe("mine") == "Mine: 5.0 MB, MIT"
