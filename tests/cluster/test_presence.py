"""Signs of life: who is there, who left in order and who fell silent."""

from pathlib import Path

import anyio
import pytest
from cluster.serving import served_client

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.presence import (
    PresenceBeacon,
    announce_presence,
    create_presence_stream,
    list_participants,
)
from septet.cluster.server import ServerConfig, serve
from septet.cluster.users import Users
from septet.domain.presence import Participant, Presence

pytestmark = pytest.mark.anyio


async def awaited(client: Connection, number: int) -> list[Participant]:
    """Signs are not acknowledged: looked for until so many are there."""
    with anyio.fail_after(20):
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
                with anyio.fail_after(20):
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
