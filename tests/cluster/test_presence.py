"""Signs of life: who is there, who left in order and who fell silent."""

from pathlib import Path

import anyio
import pytest
from cluster.serving import served_client

from septet.cluster.client import Connection
from septet.cluster.connection import Link, connect
from septet.cluster.presence import Sign, make_presence, seen, signing
from septet.cluster.server import ServerPlan, serve
from septet.cluster.users import Users
from septet.domain.presence import Presence, Seen

pytestmark = pytest.mark.anyio


async def awaited(client: Connection, number: int) -> list[Seen]:
    """Signs are not acknowledged: looked for until so many are there."""
    with anyio.fail_after(20):
        while len(found := await seen(client)) != number:
            pass
    return found


async def test_who_is_there_is_seen_and_who_left_is_not(tmp_path: Path) -> None:
    async with served_client(tmp_path) as client:
        await make_presence(client)
        async with signing(client, "member", "ada", ("coder", "runner")):
            async with signing(client, "conductor", "bob") as bob:
                await bob.conducts("clock")
                people = {one.presence.name: one for one in await awaited(client, 2)}
                assert people["ada"].presence.roles == ("coder", "runner")
                assert people["ada"].there
                with anyio.fail_after(20):
                    while not [one for one in await seen(client) if one.presence.chats == ("clock",)]:
                        pass
            assert [one.presence.name for one in await awaited(client, 1)] == ["ada"]
        assert await awaited(client, 0) == []


async def test_a_member_may_sign_for_itself(tmp_path: Path) -> None:
    async with (
        serve(ServerPlan(folder=tmp_path, roles={"coder": ()})) as server,
        connect(server.link) as client,
    ):
        await make_presence(client)
        file = str(Users(tmp_path).token_file("coder"))
        async with connect(Link(address=server.link.address, token_file=file)) as member:
            await Sign(member, "member", "ada", ("coder",)).give()
            await member.flush()
            assert member.refused == []
        assert [one.presence.name for one in await awaited(client, 1)] == ["ada"]


async def test_a_server_without_memory_of_signs_knows_nobody(tmp_path: Path) -> None:
    async with served_client(tmp_path) as client, signing(client, "member", "ada"):
        assert await seen(client) == []


def test_who_is_silent_for_long_counts_as_gone() -> None:
    presence = Presence(kind="member", name="ada", machine="m", pid=1, since=0.0)
    assert Seen(presence=presence, silent=1.0).there
    assert not Seen(presence=presence, silent=60.0).there
