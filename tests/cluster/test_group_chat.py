"""The distributed group chat: host, writer, editor and manager with its page, each a process that is killed once."""

import http.client
import json
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from shutil import copy
from subprocess import DEVNULL

import anyio
import pytest
from anyio.abc import Process
from cluster.test_replicas import free_ports

from septet.cluster.connection import connect_nats
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.store import open_nats_store
from septet.domain.events import ChatEnded, Event, ModelAnswered, TurnOpened
from septet.domain.presence import GONE_AFTER
from septet.testing.replies import Fault, ReceivedRequest, Reply
from septet.testing.server import MockServer, serve_mock

pytestmark = pytest.mark.anyio
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "distributed-group-chat"
ROUNDS = 10
SLOW = {7, 9}
"""Requests whose answers come slowly: while they do, the host and the manager are killed."""


class Thinker:
    """A model that says who speaks and how many messages it knows of: one that was missed makes a wrong number."""

    def __init__(self) -> None:
        self.asked = {number: anyio.Event() for number in range(1, 100)}

    def __call__(self, seen: ReceivedRequest) -> Reply:
        self.asked[seen.number].set()
        told = [(str(one["role"]), str(one["content"])) for one in seen.messages]
        name = "writer" if "You are the writer" in told[0][1] else "editor"
        others = "\n".join(text for role, text in told if role == "user")
        known = len(re.findall(r"^(?:writer|editor): ", others, re.MULTILINE))
        known += sum(role == "assistant" for role, _ in told)
        slow = seen.number in SLOW
        words = f"{name} {known + 1}{' …' * 40 if slow else ''}"
        return Reply(text=words, piece=2, pause=0.05 if slow else 0.0)


class Stage:
    """The four processes of the example, by the names of their files."""

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SEPTET")},
            "SEPTET_HOME": str(folder / "home"),
        }
        self._words = {
            "host": [],
            "writer": ["-m", model],
            "editor": ["-m", model],
            "group_chat_manager": ["--port", "0", "--no-open", "--token-file", str(folder / "page-token")],
        }
        self.processes: dict[str, Process] = {}

    async def start(self, name: str) -> Process:
        command = [sys.executable, str(self._folder / f"run_{name}.py"), *self._words[name]]
        process = await anyio.open_process(command, stdin=DEVNULL, stderr=None, env=self._environment)
        self.processes[name] = process
        return process

    async def kill(self, name: str) -> None:
        """kill -9, and the same command again."""
        self.processes[name].send_signal(signal.SIGKILL)
        await self.processes[name].wait()
        await self.processes[name].aclose()
        await self.start(name)

    async def stop(self) -> None:
        for process in self.processes.values():
            if process.returncode is None:
                process.terminate()
        for process in self.processes.values():
            await process.wait()
            await process.aclose()


def prepare(folder: Path) -> int:
    """The example as it stands, on a free port and with ten rounds."""
    for file in EXAMPLE.iterdir():
        copy(file, folder)
    (port,) = free_ports(1)
    config = (folder / "config.yaml").read_text()
    config = config.replace("port: 50060", f"port: {port}").replace("max_rounds: 6", f"max_rounds: {ROUNDS}")
    (folder / "config.yaml").write_text(config)
    (folder / "page-token").write_text("a-token-for-the-page")
    return port


@asynccontextmanager
async def staged(folder: Path, server: MockServer) -> AsyncGenerator[Stage]:
    stage = Stage(folder, f"url:{server.url}/v1#m")
    try:
        yield stage
    finally:
        with anyio.CancelScope(shield=True):
            await stage.stop()


async def page_address(manager: Process) -> str:
    assert manager.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        line += await manager.stdout.receive()
    return line.decode().strip()


def ask(address: str, method: str, path: str, body: str = "") -> str:
    """What the page does."""
    place = address.removeprefix("http://").split("/")[0]
    headers = {"authorization": "Bearer a-token-for-the-page", "origin": f"http://{place}"}
    with closing(http.client.HTTPConnection(place, timeout=60)) as connection:
        connection.request(method, path, body, {**headers, "content-type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
    assert response.status in (200, 201), text
    return text


def begin(address: str, goal: str) -> str:
    """The person types the task."""
    return str(json.loads(ask(address, "POST", "/api/chats", json.dumps({"goal": goal})))["chat"])


def served(address: str) -> set[str]:
    """The roles of those who are there, as the page shows them."""
    people = json.loads(ask(address, "GET", "/api/people"))
    return {role for one in people if one["silent"] < GONE_AFTER for role in one["presence"].get("roles", [])}


async def transcript(endpoint: NatsEndpoint, chat: str) -> list[Event]:
    events: list[Event] = []
    async with connect_nats(endpoint, wait=60) as client:
        async for recorded in (await open_nats_store(client)).watch(chat):
            events.append(recorded.event)
            if isinstance(recorded.event, ChatEnded):
                break
    return events


@pytest.mark.torture
async def test_each_process_is_killed_once_and_the_transcript_is_complete_and_in_order(
    tmp_path: Path,
) -> None:
    port = prepare(tmp_path)
    endpoint = NatsEndpoint(
        address=f"nats://127.0.0.1:{port}", token_file=str(tmp_path / "home" / "host" / "token")
    )
    thinker = Thinker()
    # Answers that never come: their members are killed while they wait, and ask again when they are back.
    stalled: dict[int, Fault] = {3: "stall", 5: "stall"}
    with anyio.fail_after(150):
        async with serve_mock(thinker, faults=stalled) as server, staged(tmp_path, server) as stage:
            for name in (
                "writer",
                "editor",
                "group_chat_manager",
                "host",
            ):  # the host last: any order will do
                await stage.start(name)
            page = await page_address(stage.processes["group_chat_manager"])
            chat = await anyio.to_thread.run_sync(begin, page, "a poem about many machines")
            for number, name in ((3, "writer"), (5, "editor"), (7, "host"), (9, "group_chat_manager")):
                await thinker.asked[number].wait()
                await stage.kill(name)
            page = await page_address(stage.processes["group_chat_manager"])
            events = await transcript(endpoint, chat)
            assert await anyio.to_thread.run_sync(served, page) == {"writer", "editor"}

    speakers = [("writer", "editor")[turn % 2] for turn in range(ROUNDS)]
    said = [one.answer.text.rstrip(" …") for one in events if isinstance(one, ModelAnswered)]
    assert said == [f"{name} {number}" for number, name in enumerate(speakers, start=1)]
    assert [one.speaker for one in events if isinstance(one, TurnOpened)] == speakers
    assert events[-1] == ChatEnded(
        reason="rounds", detail=f"all {ROUNDS} rounds were spoken", by=speakers[-1]
    )
