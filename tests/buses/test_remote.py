"""Turns taken on other connections: shared, taken over, fenced, and conducted by the one and only loop."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from nats.aio.client import Client

from septet.buses.connection import connect
from septet.buses.member import Member, Perform
from septet.buses.remote import remote
from septet.buses.server import Server, ServerPlan, serve
from septet.buses.turns import ENCODER, ORDERS, REPLIES, Hello, Order, Reply, made
from septet.buses.work import make_queue, make_work, take_orders
from septet.domain.events import ChatStarted, Event, ModelAnswered
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.domain.talk import Answer
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.errors import ModelFailed, RemoteFailed
from septet.ports import EventStore
from septet.runtime.conductor import conduct as loop
from septet.stores.nats import NatsStore, open_nats_store
from septet.team.floors import floor_for

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
        async with connect(running.link) as client:
            await make_work(client)
        yield running


async def start(store: EventStore, chat: str) -> None:
    await store.append(chat, ChatStarted(goal="an essay", team=PAIR, workspace=""), after=0)


async def conduct(client: Client, chat: str) -> State:
    """The loop of every chat, with members that are elsewhere."""
    store = await open_nats_store(client)
    agents = {member.name: remote(client, member, LEASE) for member in PAIR.members}
    return await loop(chat, store, floor_for(PAIR, PAIR.budget), agents)


def words(state: State) -> list[str]:
    return [one.answer.text for one in state.messages if isinstance(one, ModelAnswered)]


EXPECTED = [f"{name} {number}" for number, name in enumerate(["writer", "editor"] * 3, start=1)]


def answering(store: NatsStore, name: str = "", taken: list[str] | None = None) -> Perform:
    """A member that says its name and the number of its turn, unless the log has it already."""

    async def turn(order: Order) -> AsyncGenerator[Event, None]:
        state = fold(await store.read(order.chat))
        assert state.turn is not None
        if taken is not None:
            taken.append(f"{name}:{order.chat}:{state.turn.number}")
        if not state.turn.answers:
            text = f"{order.speaker} {state.turn.number}"
            yield ModelAnswered(role=order.speaker, answer=Answer(text=text))

    return turn


Make = Callable[[NatsStore], Perform]


@asynccontextmanager
async def members(server: Server, *makes: Make) -> AsyncGenerator[None]:
    """One member per `make`, each on a connection of its own, serving both roles."""

    async def run(make: Make) -> None:
        async with connect(server.link, wait=30) as client, anyio.create_task_group() as roles:
            member = Member(client, "member", make(await open_nats_store(client)), LEASE)
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


async def test_a_turn_whose_member_died_is_taken_over(server: Server) -> None:
    started = anyio.Event()

    async def hanging(order: Order) -> AsyncGenerator[Event, None]:
        started.set()
        await anyio.sleep_forever()
        yield ModelAnswered(role=order.speaker, answer=Answer(text="never"))

    states: list[State] = []
    ended = anyio.Event()
    async with connect(server.link) as client, anyio.create_task_group() as tasks:
        await start(await open_nats_store(client), "essay")

        async def run() -> None:
            states.append(await conduct(client, "essay"))
            ended.set()

        tasks.start_soon(run)
        async with connect(server.link) as dying, anyio.create_task_group() as doomed:
            doomed.start_soon(Member(dying, "doomed", hanging, LEASE).serve, "coder")
            await started.wait()
            await dying.close()
            doomed.cancel_scope.cancel()
        async with members(server, answering):
            await ended.wait()

    assert words(states[0]) == EXPECTED


async def ask(client: Client, order: Order, say: object) -> Reply:
    return REPLIES.decode((await client.request(order.inbox, ENCODER.encode(say), timeout=5)).data)


async def take_order(client: Client) -> Order:
    await make_queue(client, "coder", LEASE)
    async with aclosing(take_orders(client, "coder", anyio.Semaphore(1))) as orders:
        return ORDERS.decode((await anext(orders)).data)


async def test_a_zombie_that_comes_back_is_refused(server: Server) -> None:
    async with connect(server.link) as client, anyio.create_task_group() as tasks:
        await start(await open_nats_store(client), "essay")
        tasks.start_soon(conduct, client, "essay")
        order = await take_order(client)
        zombie = Hello(attempt="zombie", member="z")

        assert (await ask(client, order, zombie)).grant == 1
        assert (await ask(client, order, zombie)).grant == 1
        rival = await ask(client, order, Hello(attempt="rival", member="r"))
        assert rival.refused == "another member has the turn"
        await anyio.sleep(LEASE * 1.5)  # the zombie's lease runs out: this is the clock under test
        assert (await ask(client, order, Hello(attempt="heir", member="h"))).grant == 2
        event = ModelAnswered(role="writer", answer=Answer(text="from the grave"))
        late = await ask(client, order, made(1, 1, event))
        assert late.refused == "the turn was given to another member"
        tasks.cancel_scope.cancel()


async def test_an_event_that_is_told_twice_is_stored_once(server: Server) -> None:
    async with connect(server.link) as client, anyio.create_task_group() as tasks:
        store = await open_nats_store(client)
        await start(store, "essay")
        tasks.start_soon(conduct, client, "essay")
        order = await take_order(client)
        grant = (await ask(client, order, Hello(attempt="a", member="m"))).grant
        event = made(grant, 1, ModelAnswered(role="writer", answer=Answer(text="once")))

        for _ in range(3):
            assert not (await ask(client, order, event)).refused
        assert words(fold(await store.read("essay"))) == ["once"]
        tasks.cancel_scope.cancel()


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
    async def failing(order: Order) -> AsyncGenerator[Event, None]:
        raise error
        yield

    async with connect(server.link) as client, members(server, lambda _: failing):
        await start(await open_nats_store(client), "essay")
        with pytest.raises(kind, match=text):
            await conduct(client, "essay")


async def test_another_conductor_takes_the_chat_where_the_first_one_was_stopped(server: Server) -> None:
    taken: list[str] = []
    async with members(server, lambda store: answering(store, "m", taken)):
        async with connect(server.link) as first, anyio.create_task_group() as tasks:
            await start(store := await open_nats_store(first), "essay")
            tasks.start_soon(conduct, first, "essay")
            async for recorded in store.watch("essay"):
                if isinstance(recorded.event, ModelAnswered) and recorded.event.role == "editor":
                    tasks.cancel_scope.cancel()
                    break
        async with connect(server.link) as second:
            state = await conduct(second, "essay")

    assert words(state) == EXPECTED


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
