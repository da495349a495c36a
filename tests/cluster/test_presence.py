"""Signs of life: who is there, who left in order and who fell silent."""

import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from cluster.serving import served_client
from nats.js.api import RawStreamMsg

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.presence import (
    PresenceBeacon,
    age,
    announce_presence,
    create_presence_stream,
    is_dead,
    is_plausible,
    list_participants,
)
from septet.cluster.server import ServerConfig, serve
from septet.cluster.users import Users
from septet.domain.presence import Kind, Participant, Presence

pytestmark = pytest.mark.anyio


async def awaited(client: Connection, number: int) -> list[Participant]:
    """Signs are not acknowledged: looked for until so many are there."""
    with anyio.fail_after(120):
        while len(found := await list_participants(client)) != number:
            pass
    return found


async def test_who_is_there_is_seen_and_who_left_is_not(tmp_path: Path) -> None:
    async with served_client(tmp_path) as client:
        await create_presence_stream(client)
        async with announce_presence(client, "member", "ada", ("coder", "runner")):
            async with announce_presence(client, "conductor", "bob") as bob:
                await bob.add_chat("clock")
                people = {one.presence.name: one for one in await awaited(client, 2)}
                assert people["ada"].presence.roles == ("coder", "runner")
                assert people["ada"].is_present
                with anyio.fail_after(120):
                    while not [
                        one for one in await list_participants(client) if one.presence.chats == ("clock",)
                    ]:
                        pass
            assert [one.presence.name for one in await awaited(client, 1)] == ["ada"]
        assert await awaited(client, 0) == []


async def test_a_member_may_sign_for_itself(tmp_path: Path) -> None:
    async with (
        serve(ServerConfig(folder=tmp_path, roles={"coder": ()})) as server,
        connect_nats(server.endpoint) as client,
    ):
        await create_presence_stream(client)
        file = str(Users(tmp_path).token_file("coder"))
        async with connect_nats(NatsEndpoint(address=server.endpoint.address, token_file=file)) as member:
            await PresenceBeacon(member, "member", "ada", ("coder",)).publish()
            await member.flush()
            assert member.permission_errors == []
        assert [one.presence.name for one in await awaited(client, 1)] == ["ada"]


async def test_a_server_without_memory_of_signs_knows_nobody(tmp_path: Path) -> None:
    async with served_client(tmp_path) as client, announce_presence(client, "member", "ada"):
        assert await list_participants(client) == []


def test_who_is_silent_for_long_counts_as_gone() -> None:
    presence = Presence(kind="member", name="ada", machine="m", pid=1, since=0.0)
    assert Participant(presence=presence, silent=1.0).is_present
    assert not Participant(presence=presence, silent=60.0).is_present


def process(pid: int, machine: str = socket.gethostname()) -> Presence:
    return Presence(kind="member", name="ada", machine=machine, pid=pid, since=0.0)


def test_a_process_of_this_machine_is_dead_when_it_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        assert not is_dead(process(running.pid))
        running.kill()
    assert is_dead(process(running.pid))
    assert not is_dead(process(running.pid, machine="another"))
    assert not is_dead(process(os.getpid()))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody who may not signal others")
def test_a_process_that_may_not_be_signalled_is_alive() -> None:
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        os._exit(int(is_dead(process(os.getppid()))))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    ("kind", "chats", "subject", "counts"),
    [
        ("member", (), "$KV.presence.member.u.1", True),
        ("member", (), "$KV.presence.conductor.u.1", False),
        ("member", ("clock",), "$KV.presence.member.u.1", False),
        ("conductor", ("clock",), "$KV.presence.conductor.u.1", True),
        ("conductor", (), "$KV.presence.conductor.u.1", True),
        ("conductor", (), "$KV.presence.member.u.1", False),
    ],
)
def test_a_sign_counts_only_at_the_place_of_its_kind(
    kind: Kind, chats: tuple[str, ...], subject: str, counts: bool
) -> None:
    presence = Presence(kind=kind, name="ada", machine="m", pid=1, since=0.0, chats=chats)
    assert is_plausible(presence, subject) == counts


def test_a_sign_is_as_old_as_the_server_says_and_never_from_the_future() -> None:
    now = datetime.now(UTC)
    assert 60.0 <= age(RawStreamMsg(time=now - timedelta(seconds=60))) < 120.0
    assert age(RawStreamMsg(time=now + timedelta(seconds=60))) == 0.0
    assert age(RawStreamMsg()) == 0.0
