"""kill -9 of server, members and conductor while chats run: every transcript ends as if nothing had happened."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from subprocess import DEVNULL

import anyio
import pytest
from anyio.abc import Process
from cluster.actor import ROUNDS

from septet.cluster.connection import connect_nats
from septet.cluster.hosts import create_streams
from septet.cluster.server import NatsServer, ServerConfig, serve
from septet.cluster.store import open_nats_store
from septet.cluster.users import Users
from septet.domain.events import ModelAnswered, TurnOpened

pytestmark = pytest.mark.anyio

ACTOR = Path(__file__).with_name("actor.py")
SPEAKERS = ["writer", "editor"] * (ROUNDS // 2)
EXPECTED = [f"{name} {number}" for number, name in enumerate(SPEAKERS, start=1)]


class Stage:
    """A server and some actors, each of which is started again when it was killed."""

    def __init__(self, server: NatsServer, member: str, chats: list[str]) -> None:
        self._server = server
        tokens = {"conductor": server.token, "member": member}
        self._addresses = {
            kind: server.endpoint.address.replace("//", f"//{token}@") for kind, token in tokens.items()
        }
        self._chats = chats
        self._actors: dict[str, Process] = {}
        self.kills = 0

    async def start(self, name: str) -> None:
        kind = "conductor" if name == "conductor" else "member"
        command = [sys.executable, str(ACTOR), kind, self._addresses[kind], *self._chats]
        self._actors[name] = await anyio.open_process(command, stdin=DEVNULL, stdout=DEVNULL, stderr=None)

    async def kill(self, name: str) -> None:
        self.kills += 1
        if name == "server":
            back = self._server.restarted
            self._server.kill()
            await back.wait()
        elif name == "conductor" and self.finished:
            return
        else:
            self._actors[name].kill()
            await self._actors[name].aclose()
            await self.start(name)

    @property
    def finished(self) -> bool:
        return self._actors["conductor"].returncode is not None

    async def end(self) -> None:
        """The conductor exits when all chats have ended."""
        assert await self._actors["conductor"].wait() == 0

    async def clear(self) -> None:
        for actor in self._actors.values():
            if actor.returncode is None:
                actor.kill()
            await actor.aclose()


@asynccontextmanager
async def staged(folder: Path, chats: int) -> AsyncGenerator[tuple[Stage, NatsServer]]:
    folder.mkdir(exist_ok=True)
    member = Users(folder).ensure("pair", ["coder", "reviewer"], ["writer", "editor"])
    async with serve(ServerConfig(folder=folder)) as server:
        async with connect_nats(server.endpoint) as client:
            await create_streams(client)
        stage = Stage(server, member.token, [f"chat-{number}" for number in range(chats)])
        try:
            for name in ("conductor", "member-1", "member-2"):
                await stage.start(name)
            yield stage, server
        finally:
            with anyio.CancelScope(shield=True):
                await stage.clear()


async def check(server: NatsServer, chats: int) -> None:
    async with connect_nats(server.endpoint) as client:
        store = await open_nats_store(client)
        for number in range(chats):
            events = [recorded.event for recorded in await store.read(f"chat-{number}")]
            assert [one.answer.text for one in events if isinstance(one, ModelAnswered)] == EXPECTED
            assert [one.speaker for one in events if isinstance(one, TurnOpened)] == SPEAKERS


async def test_each_part_is_killed_once(tmp_path: Path) -> None:
    with anyio.fail_after(90):
        async with staged(tmp_path, chats=8) as (stage, server):
            for name in ("member-1", "server", "conductor", "member-2"):
                await stage.kill(name)
            await stage.end()
            await check(server, chats=8)


@pytest.mark.torture
async def test_a_hundred_random_kills(tmp_path: Path) -> None:
    random, rounds = Random(7), 0
    with anyio.fail_after(900):
        while rounds < 100:
            async with staged(tmp_path / str(rounds), chats=20) as (stage, server):
                while not stage.finished and stage.kills < 15:
                    await stage.kill(random.choice(["server", "conductor", "member-1", "member-2"]))
                    await anyio.sleep(random.uniform(0.1, 1.5))
                await stage.end()
                await check(server, chats=20)
            rounds += stage.kills
