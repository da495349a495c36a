"""The server is away for a while, or the network is cut: work goes on when it is back, as if nothing had happened."""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex
from subprocess import DEVNULL

import anyio
import pytest
import trustme
from anyio.abc import Process
from cluster.test_kills import ACTOR, check

from septet.cluster.connection import connect_nats
from septet.cluster.server import NatsServer, ServerConfig, serve
from septet.cluster.store import open_nats_store

pytestmark = pytest.mark.anyio
CHATS = 6


@asynccontextmanager
async def acting(
    address: str, prefix: tuple[str, ...] = (), environment: dict[str, str] | None = None
) -> AsyncGenerator[Process]:
    """Two members and a conductor; yields the conductor, which exits when all chats have ended."""
    chats = [f"chat-{number}" for number in range(CHATS)]
    words = [*prefix, sys.executable, str(ACTOR)]
    started = [
        await anyio.open_process(
            [*words, kind, address, *(chats if kind == "conductor" else [])],
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=None,
            env={**os.environ, **(environment or {})},
        )
        for kind in ("member", "member", "conductor")
    ]
    try:
        yield started[-1]
    finally:
        with anyio.CancelScope(shield=True):
            for process in started:
                if process.returncode is None:
                    process.kill()
                await process.aclose()


async def begun(server: NatsServer) -> None:
    """Some chat has moved, so that an outage hits it in the middle."""
    async with connect_nats(server.endpoint) as client:
        store = await open_nats_store(client)
        async for recorded in store.watch("chat-0"):
            if recorded.event:
                return


def with_token(server: NatsServer) -> str:
    return server.address.replace("//", f"//{server.token}@")


@pytest.mark.parametrize("seconds", [3, pytest.param(30, marks=pytest.mark.torture)])
async def test_the_server_is_away_for_a_while(tmp_path: Path, seconds: float) -> None:
    with anyio.fail_after(120 + seconds):
        async with serve(ServerConfig(folder=tmp_path)) as server:
            address, port = with_token(server), int(server.address.rsplit(":", 1)[1])
            async with acting(address) as conductor:
                await begun(server)
                await server.stop()
                await anyio.sleep(seconds)  # the outage itself
                again = NatsServer(ServerConfig(folder=tmp_path, port=port), *server.identity)
                await again.start()
                try:
                    assert await conductor.wait() == 0
                    await check(again, chats=CHATS)
                finally:
                    await again.stop()


def has_namespaces() -> bool:
    return (
        os.geteuid() == 0
        and shutil.which("ip") is not None
        and subprocess.run(["ip", "netns", "list"], capture_output=True, check=False).returncode == 0
    )


class Cable:
    """A network of two places: here, and a namespace at the other end of a cable that can be pulled."""

    def __init__(self) -> None:
        self.name = f"septet-{token_hex(3)}"
        self.near, self.far = f"sp{token_hex(4)}", f"sq{token_hex(4)}"
        self.address = f"10.203.{os.getpid() % 250}.1"

    def lay(self) -> None:
        there = self.address.removesuffix(".1") + ".2"
        for words in (
            f"netns add {self.name}",
            f"link add {self.near} type veth peer name {self.far} netns {self.name}",
            f"addr add {self.address}/24 dev {self.near}",
            f"link set {self.near} up",
            f"-n {self.name} addr add {there}/24 dev {self.far}",
            f"-n {self.name} link set {self.far} up",
            f"-n {self.name} link set lo up",
        ):
            run(words)

    def pull(self) -> None:
        """Packets vanish; nobody is told that the connection is gone."""
        run(f"-n {self.name} link set {self.far} down")

    def plug_in(self) -> None:
        run(f"-n {self.name} link set {self.far} up")

    def take_away(self) -> None:
        subprocess.run(["ip", "netns", "delete", self.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", self.near], check=False, capture_output=True)


def run(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


@pytest.fixture
def cable() -> Generator[Cable]:
    if not has_namespaces():
        pytest.skip("network namespaces need root and iproute2")
    made = Cable()
    try:
        made.lay()
    except subprocess.CalledProcessError as error:
        made.take_away()
        pytest.skip(f"this machine lays no cables ({error.stderr.decode().strip()})")
    yield made
    made.take_away()


@pytest.mark.parametrize("seconds", [4, pytest.param(45, marks=pytest.mark.torture)])
async def test_the_network_is_cut_for_a_while(tmp_path: Path, cable: Cable, seconds: float) -> None:
    authority = trustme.CA()
    paper = authority.issue_cert(cable.address)
    certificate, key, signer = (str(tmp_path / name) for name in ("cert.pem", "key.pem", "ca.pem"))
    paper.cert_chain_pems[0].write_to_path(certificate)
    paper.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(signer)
    plan = ServerConfig(folder=tmp_path / "host", host=cable.address, certificate=certificate, key=key)
    there = ("ip", "netns", "exec", cable.name)
    with anyio.fail_after(150 + seconds):
        async with (
            serve(plan) as server,
            acting(with_token(server), there, {"SSL_CERT_FILE": signer}) as conductor,
        ):
            await begun(server)
            cable.pull()
            await anyio.sleep(seconds)  # the outage itself
            cable.plug_in()
            assert await conductor.wait() == 0
            await check(server, chats=CHATS)
