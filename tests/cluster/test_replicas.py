"""Three servers, three copies: the leader is killed again and again, and nothing acknowledged is lost."""

import json
import socket
import subprocess
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import anyio
import nats.errors
import pytest
from nats.js.manager import JetStreamManager

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.server import find_binary
from septet.cluster.store import NatsStore, open_nats_store
from septet.cluster.stream import STREAM
from septet.domain.events import Recorded, TurnOpened
from septet.errors import BadConfig

pytestmark = [pytest.mark.anyio, pytest.mark.torture]


def free_ports(number: int) -> list[int]:
    with ExitStack() as sockets:
        found = [sockets.enter_context(socket.socket()) for _ in range(number)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


class Trio:
    """Three nats-servers that know each other."""

    def __init__(self, binary: str, folder: Path) -> None:
        ports = free_ports(6)
        self.ports, self._routes = ports[:3], ports[3:]
        self._binary = binary
        self._folder = folder
        self._servers: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        number = int(name[-1])
        routes = [f"nats://127.0.0.1:{port}" for port in self._routes]
        config = {
            "server_name": name,
            "listen": f"127.0.0.1:{self.ports[number]}",
            "jetstream": {"store_dir": str(self._folder / name)},
            "cluster": {"name": "trio", "listen": f"127.0.0.1:{self._routes[number]}", "routes": routes},
            "max_payload": 8 << 20,
        }
        path = self._folder / f"{name}.conf"
        path.write_text(json.dumps(config))
        log = self._folder / f"{name}.log"
        self._servers[name] = subprocess.Popen([self._binary, "-c", str(path), "-l", str(log)])

    def kill(self, name: str) -> None:
        self._servers[name].kill()
        self._servers[name].wait()

    def clear(self) -> None:
        for server in self._servers.values():
            server.kill()
            server.wait()


@pytest.fixture
async def binary() -> str:
    return await find_binary()


@pytest.fixture
def trio(binary: str, tmp_path: Path) -> Generator[Trio]:
    servers = Trio(binary, tmp_path)
    for number in range(3):
        servers.start(f"node-{number}")
    yield servers
    servers.clear()


async def conduct(store: NatsStore, chat: str, acknowledged: list[Recorded], enough: anyio.Event) -> None:
    """Single events and steps of two by turns, all of them numbered."""
    after = number = 0
    while not enough.is_set():
        event, sequel = TurnOpened(speaker=str(number)), TurnOpened(speaker=str(number + 1))
        acknowledged += await store.append(
            chat, event, after, (lambda _, s=sequel: s) if number % 3 else None
        )
        after, number = acknowledged[-1].seq, len(acknowledged)


async def leader_of(client: Connection) -> str:
    """Asked again until the cluster has elected one."""
    with anyio.fail_after(120):
        while True:
            try:
                info = await JetStreamManager(client).stream_info(STREAM)
                if info.cluster is not None and info.cluster.leader:
                    return info.cluster.leader
            except nats.errors.Error:
                pass
            await anyio.sleep(0.2)


async def grown(store: NatsStore, logs: dict[str, list[Recorded]]) -> None:
    """Every chat has moved on by some events."""
    with anyio.fail_after(120):
        for chat, log in logs.items():
            news = store.watch(chat, log[-1].seq if log else 0)
            for _ in range(30):
                await anext(news)


async def replicated_store(client: Connection) -> NatsStore:
    """Asked again until enough servers have found each other."""
    with anyio.fail_after(120):
        while True:
            try:
                return await open_nats_store(client, replicas=3)
            except BadConfig:
                await anyio.sleep(0.2)


async def test_three_kills_of_the_leader_lose_nothing(trio: Trio) -> None:
    endpoint = NatsEndpoint(address=f"nats://127.0.0.1:{trio.ports[0]}")
    logs: dict[str, list[Recorded]] = {f"chat-{number}": [] for number in range(6)}
    enough = anyio.Event()
    async with connect_nats(endpoint, wait=30) as client:
        store = await replicated_store(client)
        async with anyio.create_task_group() as tasks:
            for chat, acknowledged in logs.items():
                tasks.start_soon(conduct, store, chat, acknowledged, enough)
            for _ in range(3):
                leader = await leader_of(client)
                await grown(store, logs)
                trio.kill(leader)
                await grown(store, logs)
                trio.start(leader)
                await grown(store, logs)
            enough.set()
        for chat, acknowledged in logs.items():
            log = await store.read(chat)
            assert list(log) == acknowledged
            assert [one.event for one in log] == [TurnOpened(speaker=str(n)) for n in range(len(log))]
            speakers = [str(number) for number in range(len(acknowledged))]
            assert [one.event for one in acknowledged] == [TurnOpened(speaker=name) for name in speakers]
