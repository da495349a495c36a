"""What the JetStream store adds to the contract: it is shared, it outlives its server, it refuses what is too big."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from cluster.serving import served_client
from nats.aio.msg import Msg

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.server import NatsServer, ServerConfig, serve
from septet.cluster.store import EXPECTED_SEQUENCE, EXPECTED_SUBJECT, NatsStore, open_nats_store
from septet.cluster.stream import STORED, message_number, subject_of
from septet.domain.codec import encode
from septet.domain.events import Event, PersonSpoke, Recorded, ReviewGiven, TurnOpened
from septet.errors import Conflict, LogDamaged, StoreFailed

pytestmark = pytest.mark.anyio


def turn(speaker: object) -> TurnOpened:
    return TurnOpened(speaker=str(speaker))


async def conduct(store: NatsStore, chat: str, turns: int, acknowledged: list[Recorded]) -> None:
    after = 0
    for number in range(turns):
        acknowledged += await store.append(chat, turn(number), after)
        after = acknowledged[-1].seq


async def kill(server: NatsServer) -> None:
    """kill -9 the server, and return when it listens again."""
    back = server.restarted
    server.kill()
    with anyio.fail_after(120):
        await back.wait()


@asynccontextmanager
async def two_clients(folder: Path) -> AsyncGenerator[tuple[Connection, Connection]]:
    plan = ServerConfig(folder=folder)
    async with (
        serve(plan) as server,
        connect_nats(server.endpoint) as here,
        connect_nats(server.endpoint) as there,
    ):
        yield here, there


async def test_two_conductors_on_two_connections_meet_at_the_server(tmp_path: Path) -> None:
    async with two_clients(tmp_path) as (here, there):
        first, second = await open_nats_store(here), await open_nats_store(there)
        started = (await first.append("clock", turn("planner"), after=0))[-1]
        assert list(await second.read("clock")) == [started]
        await second.append("clock", turn("other"), after=started.seq)

        with pytest.raises(Conflict, match="another conductor"):
            await first.append("clock", turn("mine"), after=started.seq)


async def test_watchers_on_another_connection_see_each_event_once(tmp_path: Path) -> None:
    async with two_clients(tmp_path) as (here, there):
        writer, reader = await open_nats_store(here), await open_nats_store(there)
        acknowledged: list[Recorded] = []
        seen: list[Recorded] = []

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(conduct, writer, "clock", 50, acknowledged)
            async for recorded in reader.watch("clock"):
                seen.append(recorded)
                if recorded.event == turn(49):
                    break

        assert seen == acknowledged


async def test_appends_go_on_over_kills_of_the_server_with_nothing_lost_or_doubled(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)) as server, connect_nats(server.endpoint) as client:
        store = await open_nats_store(client)
        logs: dict[str, list[Recorded]] = {f"chat-{number}": [] for number in range(5)}

        async with anyio.create_task_group() as tasks:
            for chat, acknowledged in logs.items():
                tasks.start_soon(conduct, store, chat, 200, acknowledged)
            for _ in range(3):
                await kill(server)

        for chat, acknowledged in logs.items():
            assert [one.event for one in acknowledged] == [turn(number) for number in range(200)]
            assert list(await store.read(chat)) == acknowledged
        assert server.restarts == 3


async def test_a_watcher_goes_on_after_a_kill_of_the_server(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)) as server, connect_nats(server.endpoint) as client:
        store = await open_nats_store(client)
        seen: list[Recorded] = []
        acknowledged = list(await store.append("clock", turn("before"), after=0))
        async for recorded in store.watch("clock"):
            seen.append(recorded)
            if recorded.event == turn("after"):
                break
            await kill(server)
            acknowledged += await store.append("clock", turn("after"), after=recorded.seq)

        assert seen == acknowledged


async def test_an_event_that_is_too_big_is_refused_and_the_next_one_passes(tmp_path: Path) -> None:
    async with served_client(tmp_path) as client:
        store = await open_nats_store(client)

        with pytest.raises(StoreFailed, match="too big"):
            await store.append("clock", PersonSpoke(text="x" * 9_000_000), after=None)
        await store.append("clock", PersonSpoke(text="x" * 5_000_000), after=None)

        assert len(await store.read("clock")) == 1


async def test_a_chat_longer_than_a_page_is_read_whole(tmp_path: Path) -> None:
    async with served_client(tmp_path) as client:
        store = await open_nats_store(client)

        async def talk(number: int) -> None:
            for _ in range(125):
                await store.append("long", PersonSpoke(text=str(number)), after=None)

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(talk, number)

        log = await store.read("long")
        assert len(log) == 2500
        assert list(await store.read("long", log[1200].seq)) == list(log[1201:])


async def test_a_server_that_stays_away_is_named(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)) as server, connect_nats(server.endpoint) as client:
        store = await open_nats_store(client, retry_timeout=0.0)
        await server.stop()

        with pytest.raises(StoreFailed, match="does not answer"):
            await store.append("clock", turn("coder"), after=0)


async def test_a_writer_cannot_hide_what_others_wrote(tmp_path: Path) -> None:
    """It has its event compared with its own words only, so that the event before seems to be an older one."""
    async with two_clients(tmp_path) as (here, there):
        store = await open_nats_store(here)
        first = (await store.append("clock", turn("coder"), after=0))[-1]
        hidden = (await store.append("clock", turn("runner"), after=first.seq))[-1]
        told: list[Msg] = []

        async def hear(message: Msg) -> None:
            told.append(message)

        subject = subject_of("clock", [turn("coder")], fenced=True)
        await here.subscribe(f"{STORED}.>", cb=hear)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        await here.flush()
        headers = {EXPECTED_SUBJECT: subject, EXPECTED_SEQUENCE: str(message_number(first.seq))}
        forged = encode(Recorded(chat="clock", seq=0, at=hidden.at, event=turn("coder")))
        await there.request(subject, forged, headers=headers)
        last = await anext(aiter(store.watch("clock", hidden.seq)))

        speakers = [recorded.event for recorded in await store.read_to("clock", first.seq, told[0])]
        assert speakers == [turn("runner"), turn("coder")]
        assert last.event == turn("coder")


@pytest.mark.parametrize(
    "told",
    [
        [turn("coder")],
        [ReviewGiven(version=1, tree="t", verdict="revise")],
        [ReviewGiven(version=1, tree="t", verdict="accept"), turn("coder"), turn("coder")],
    ],
)
async def test_a_message_that_holds_something_else_than_it_may_be_written_for_is_not_believed(
    tmp_path: Path, told: list[Event]
) -> None:
    """The server lets a member write by subject; what is in the message it does not look at."""
    async with served_client(tmp_path) as client:
        store = await open_nats_store(client)
        await store.append("clock", turn("coder"), after=0)
        subject = subject_of("clock", told, fenced=True)
        forged = [ReviewGiven(version=1, tree="t", verdict="accept"), turn("coder")]
        lines = [encode(Recorded(chat="clock", seq=0, at=1.0, event=event)) for event in forged]
        await client.request(subject, b"\n".join(lines))

        with pytest.raises(LogDamaged, match="does not match its subject"):
            await store.read("clock")
