"""Turns taken on other connections: shared, taken over, fenced, and made by the one and only loop."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from nats.aio.client import Client

from septet.buses.connection import connect
from septet.buses.member import Call, Member, Perform
from septet.buses.recall import Cast, taking
from septet.buses.remote import perform_together
from septet.buses.server import Server, ServerPlan, serve
from septet.buses.turns import ENCODER, WORK, Order
from septet.domain.events import ChatEnded, ChatStarted, Event, ModelAnswered, PersonSpoke, TurnOpened
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.domain.talk import Answer
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.errors import Conflict, LogDamaged, ModelFailed, RemoteFailed
from septet.ports import EventStore
from septet.runtime.conductor import Agents
from septet.runtime.log import Log
from septet.stores.nats import NatsStore, open_nats_store
from septet.team.floors import floor_for
from septet.team.moves import Floor

pytestmark = pytest.mark.anyio

LEASE = 0.6
PAIR = TeamSpec(
    name="pair",
    members=(RoleSpec(name="writer", role="coder"), RoleSpec(name="editor", role="reviewer")),
    floor="round_robin",
    budget=Budget(rounds=6),
)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[Server]:
    async with serve(ServerPlan(folder=tmp_path / "nats")) as running:
        yield running


async def start(store: EventStore, chat: str) -> int:
    (started,) = await store.append(chat, ChatStarted(goal="an essay", team=PAIR, workspace=""), after=0)
    return started.seq


async def conduct(client: Client, chat: str) -> State:
    """The loop of every chat, with nobody here."""
    log = await Log.open(await open_nats_store(client), chat)
    async for _ in perform_together(client, log, floor_for(PAIR, PAIR.budget), {}, LEASE):
        pass
    return log.state


def words(state: State) -> list[str]:
    return [one.answer.text for one in state.messages if isinstance(one, ModelAnswered)]


EXPECTED = [f"{name} {number}" for number, name in enumerate(["writer", "editor"] * 3, start=1)]


def saying(name: str, taken: list[str] | None = None) -> Cast:
    """A member that says its name and the number of its turn, unless the log has it already."""

    async def speak(state: State) -> AsyncGenerator[Event, None]:
        assert state.turn is not None
        if taken is not None:
            taken.append(f"{name}:{state.chat}:{state.turn.number}")
        if not state.turn.answers:
            speaker = state.turn.speaker
            yield ModelAnswered(role=speaker, answer=Answer(text=f"{speaker} {state.turn.number}"))

    def cast(state: State) -> tuple[Floor, Agents]:
        """One turn at a time, so that others can have the next."""
        assert state.turn is not None
        return floor_for(state.team, state.budget), {state.turn.speaker: speak}

    return cast


def answering(store: NatsStore, name: str = "", taken: list[str] | None = None) -> Perform:
    return taking(store, saying(name, taken))


Make = Callable[[NatsStore], Perform]


@asynccontextmanager
async def members(server: Server, *makes: Make) -> AsyncGenerator[None]:
    """One member per `make`, each on a connection of its own, serving both roles."""

    async def run(make: Make) -> None:
        async with connect(server.link, wait=30) as client, anyio.create_task_group() as roles:
            member = Member(client, make(await open_nats_store(client)), LEASE)
            roles.start_soon(member.serve, "coder")
            roles.start_soon(member.serve, "reviewer")

    async with anyio.create_task_group() as tasks:
        for make in makes:
            tasks.start_soon(run, make)
        yield
        tasks.cancel_scope.cancel()


async def test_a_chat_with_remote_members_has_the_same_transcript_as_at_home(server: Server) -> None:
    async with connect(server.link) as client, members(server, answering):
        await start(await open_nats_store(client), "essay")
        state = await conduct(client, "essay")

    assert words(state) == EXPECTED
    assert state.ended is not None
    assert state.ended.reason == "bound"


async def test_members_may_come_after_the_conductor(server: Server) -> None:
    states: list[State] = []
    async with connect(server.link) as client, anyio.create_task_group() as tasks:
        await start(await open_nats_store(client), "essay")

        async def run() -> None:
            states.append(await conduct(client, "essay"))
            tasks.cancel_scope.cancel()

        tasks.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        async with members(server, answering):
            await anyio.sleep_forever()

    assert [words(state) for state in states] == [EXPECTED]


async def test_several_members_share_the_turns_and_each_is_taken_once(server: Server) -> None:
    taken: list[str] = []
    states: dict[str, State] = {}

    async with connect(server.link) as client:
        store = await open_nats_store(client)

        async def run(chat: str) -> None:
            await start(store, chat)
            states[chat] = await conduct(client, chat)

        makes = [partial(answering, name=str(number), taken=taken) for number in range(3)]
        async with members(server, *makes), anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(run, f"essay-{number}")

    assert [words(state) for state in states.values()] == [EXPECTED] * 20
    assert len(taken) == len({one.split(":", 1)[1] for one in taken}) == 120
    assert len({one.split(":")[0] for one in taken}) > 1


async def test_a_chat_goes_on_without_its_conductor(server: Server) -> None:
    async with connect(server.link) as client, members(server, answering):
        store = await open_nats_store(client)
        await start(store, "essay")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(conduct, client, "essay")
            async for recorded in store.watch("essay"):
                if isinstance(recorded.event, ModelAnswered):
                    tasks.cancel_scope.cancel()  # the conductor, after the first words
                    break
        async for recorded in store.watch("essay"):
            if isinstance(recorded.event, ChatEnded):
                break
        assert words(fold(await store.read("essay"))) == EXPECTED


async def test_a_turn_whose_member_died_is_taken_over(server: Server) -> None:
    started = anyio.Event()

    async def hanging(_: Call) -> None:
        started.set()
        await anyio.sleep_forever()

    states: list[State] = []
    ended = anyio.Event()
    async with connect(server.link) as client, anyio.create_task_group() as tasks:
        await start(await open_nats_store(client), "essay")

        async def run() -> None:
            states.append(await conduct(client, "essay"))
            ended.set()

        tasks.start_soon(run)
        async with connect(server.link) as dying, anyio.create_task_group() as doomed:
            doomed.start_soon(Member(dying, hanging, LEASE).serve, "coder")
            await started.wait()
            await dying.close()
            doomed.cancel_scope.cancel()
        async with members(server, answering):
            await ended.wait()

    assert words(states[0]) == EXPECTED


async def test_a_zombie_that_comes_back_is_refused(server: Server) -> None:
    """It took the turn, was believed dead, and has something to say when another has said it."""
    took, go_on = anyio.Event(), anyio.Event()

    async def wake(state: State) -> AsyncGenerator[Event, None]:
        took.set()
        await go_on.wait()
        yield ModelAnswered(role="writer", answer=Answer(text="from the grave"))

    def sleepy(state: State) -> tuple[Floor, Agents]:
        return floor_for(state.team, state.budget), {"writer": wake}

    async with connect(server.link) as client:
        store = await open_nats_store(client)
        after = await start(store, "essay")
        opening = TurnOpened(speaker="writer", role="coder")
        (opened,) = await store.append("essay", opening, after=after)
        call = Call("essay", opened.seq)

        async def rise() -> None:
            with pytest.raises(Conflict):
                await taking(store, sleepy)(call)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rise)
            await took.wait()
            await answering(store)(call)
            go_on.set()
        assert words(fold(await store.read("essay"))) == ["writer 1"]


async def test_a_turn_that_is_ordered_again_and_again_is_taken_once(server: Server) -> None:
    taken: list[str] = []
    async with connect(server.link) as client, members(server, partial(answering, name="m", taken=taken)):
        store = await open_nats_store(client)
        await start(store, "essay")

        async def insist() -> None:
            async for recorded in store.watch("essay"):
                if isinstance(recorded.event, TurnOpened):
                    order = Order(chat="essay", opened=recorded.seq)
                    for _ in range(3):
                        await client.publish(f"{WORK}.{recorded.event.role}", ENCODER.encode(order))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(insist)
            await conduct(client, "essay")
            tasks.cancel_scope.cancel()
        state = fold(await store.read("essay"))

    assert words(state) == EXPECTED
    assert len(taken) == len(EXPECTED)


async def test_words_of_the_person_during_a_turn_are_heard_by_the_conductor(server: Server) -> None:
    def interrupted(store: NatsStore) -> Perform:
        once = iter([True])

        async def take(call: Call) -> None:
            if next(once, False):
                await store.append(call.chat, PersonSpoke(text="shorter"), after=None)
            await answering(store)(call)

        return take

    async with connect(server.link) as client, members(server, interrupted):
        await start(await open_nats_store(client), "essay")
        state = await conduct(client, "essay")

    assert words(state) == EXPECTED
    assert [remark.text for remark in state.messages if isinstance(remark, PersonSpoke)] == ["shorter"]


@pytest.mark.parametrize(
    "astray", [TurnOpened(speaker="writer", role="coder"), ChatEnded(reason="done", detail="trust me")]
)
async def test_a_member_that_breaks_the_rules_is_found_out(
    server: Server, astray: TurnOpened | ChatEnded
) -> None:
    def bribed(store: NatsStore) -> Perform:
        async def take(call: Call) -> None:
            await store.append(call.chat, astray, after=call.opened)

        return take

    async with connect(server.link) as client, members(server, bribed):
        await start(await open_nats_store(client), "essay")
        with pytest.raises(LogDamaged, match="was due"):
            await conduct(client, "essay")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ModelFailed("the service is down", "wait"), ModelFailed, "the service is down: wait"),
        (ValueError("seven is not six"), RemoteFailed, "ValueError: seven is not six"),
    ],
)
async def test_a_members_failure_reaches_the_conductor_with_type_and_text(
    server: Server, error: Exception, kind: type[Exception], text: str
) -> None:
    async def failing(_: Call) -> None:
        raise error

    async with connect(server.link) as client, members(server, lambda _: failing):
        await start(await open_nats_store(client), "essay")
        with pytest.raises(kind, match=text):
            await conduct(client, "essay")


async def test_turns_go_on_over_kills_of_the_server(server: Server) -> None:
    states: dict[str, State] = {}
    async with connect(server.link) as client, members(server, answering, answering):
        store = await open_nats_store(client)

        async def run(chat: str) -> None:
            await start(store, chat)
            states[chat] = await conduct(client, chat)

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(run, f"essay-{number}")
            for _ in range(2):
                back = server.back
                server.kill()
                await back.wait()

    assert [words(state) for state in states.values()] == [EXPECTED] * 5
