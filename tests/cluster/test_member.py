"""Turns whose member or server died, was slow, or heard of them twice: each is taken once."""

from functools import partial

import anyio
import pytest
from cluster.pair import EXPECTED, LEASE, answering, conduct, members, start, words

from septet.cluster.connection import connect_nats
from septet.cluster.member import Member, PendingTurn, take_turns
from septet.cluster.server import NatsServer
from septet.cluster.store import open_nats_store
from septet.cluster.turns import ENCODER, ORDER_SUBJECT, TurnOrder
from septet.domain.events import Event, ModelAnswered, TurnOpened
from septet.domain.messages import Answer
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.errors import Conflict
from septet.ports import Record
from septet.runtime.conductor import Agents
from septet.team.floor import Floor
from septet.ways.table import floor_for

pytestmark = pytest.mark.anyio


async def test_a_turn_whose_member_died_is_taken_over(server: NatsServer) -> None:
    started = anyio.Event()

    async def hanging(_: PendingTurn) -> None:
        started.set()
        await anyio.sleep_forever()

    states: list[State] = []
    ended = anyio.Event()
    async with connect_nats(server.endpoint) as client, anyio.create_task_group() as tasks:
        await start(await open_nats_store(client), "essay")

        async def run() -> None:
            states.append(await conduct(client, "essay"))
            ended.set()

        tasks.start_soon(run)
        async with connect_nats(server.endpoint) as dying, anyio.create_task_group() as doomed:
            doomed.start_soon(Member(dying, hanging, LEASE).serve, "coder")
            await started.wait()
            await dying.close()
            doomed.cancel_scope.cancel()
        async with members(server, answering):
            await ended.wait()

    assert words(states[0]) == EXPECTED


async def test_a_zombie_that_comes_back_is_refused(server: NatsServer) -> None:
    """It took the turn, was believed dead, and has something to say when another has said it."""
    took, go_on = anyio.Event(), anyio.Event()

    async def wake(state: State, record: Record) -> Event:
        took.set()
        await go_on.wait()
        return ModelAnswered(role="writer", answer=Answer(text="from the grave"))

    def sleepy(state: State) -> tuple[Floor, Agents]:
        return floor_for(state.team, state.budget), {"writer": wake}

    async with connect_nats(server.endpoint) as client:
        store = await open_nats_store(client)
        after = await start(store, "essay")
        opening = TurnOpened(speaker="writer", role="coder")
        (opened,) = await store.append("essay", opening, after=after)
        call = PendingTurn("essay", opened.seq)

        async def rise() -> None:
            with pytest.raises(Conflict):
                await take_turns(store, sleepy)(call)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rise)
            await took.wait()
            await answering(store)(call)
            go_on.set()
        assert words(fold(await store.read("essay"))) == ["writer 1"]


async def test_a_turn_that_is_ordered_again_and_again_is_taken_once(server: NatsServer) -> None:
    taken: list[str] = []
    async with (
        connect_nats(server.endpoint) as client,
        members(server, partial(answering, name="m", taken=taken)),
    ):
        store = await open_nats_store(client)
        await start(store, "essay")

        async def insist() -> None:
            async for recorded in store.watch("essay"):
                if isinstance(recorded.event, TurnOpened):
                    order = TurnOrder(chat="essay", opened=recorded.seq)
                    for _ in range(3):
                        await client.publish(f"{ORDER_SUBJECT}.{recorded.event.role}", ENCODER.encode(order))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(insist)
            await conduct(client, "essay")
            tasks.cancel_scope.cancel()
        state = fold(await store.read("essay"))

    assert words(state) == EXPECTED
    assert len(taken) == len(EXPECTED)


async def test_turns_go_on_over_kills_of_the_server(server: NatsServer) -> None:
    states: dict[str, State] = {}
    async with connect_nats(server.endpoint) as client, members(server, answering, answering):
        store = await open_nats_store(client)

        async def run(chat: str) -> None:
            await start(store, chat)
            states[chat] = await conduct(client, chat)

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(run, f"essay-{number}")
            for _ in range(2):
                back = server.restarted
                server.kill()
                await back.wait()

    assert [words(state) for state in states.values()] == [EXPECTED] * 5
