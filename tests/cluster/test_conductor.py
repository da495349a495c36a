"""Turns taken on other connections: shared, and made by the one and only loop."""

from functools import partial

import anyio
import pytest
from cluster.pair import EXPECTED, answering, conduct, members, start, words

from septet.cluster import deployment, member
from septet.cluster.connection import connect_nats
from septet.cluster.deployment import ChatListener
from septet.cluster.member import MAX_CONCURRENT_CHATS, PendingTurn, TakeTurn
from septet.cluster.server import NatsServer
from septet.cluster.store import Feed, NatsStore, open_nats_store
from septet.domain.events import ChatEnded, ModelAnswered, PersonSpoke, Recorded, TurnOpened
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.errors import LogDamaged, ModelFailed, RemoteFailed

pytestmark = pytest.mark.anyio


async def test_a_chat_with_remote_members_has_the_same_transcript_as_at_home(server: NatsServer) -> None:
    async with connect_nats(server.endpoint) as client, members(server, answering):
        await start(await open_nats_store(client), "essay")
        state = await conduct(client, "essay")

    assert words(state) == EXPECTED
    assert state.ended is not None
    assert state.ended.reason == "bound"


async def test_members_may_come_after_the_conductor(server: NatsServer) -> None:
    states: list[State] = []
    async with connect_nats(server.endpoint) as client, anyio.create_task_group() as tasks:
        await start(await open_nats_store(client), "essay")

        async def run() -> None:
            states.append(await conduct(client, "essay"))
            tasks.cancel_scope.cancel()

        tasks.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        async with members(server, answering):
            await anyio.sleep_forever()

    assert [words(state) for state in states] == [EXPECTED]


@pytest.mark.parametrize("room", [MAX_CONCURRENT_CHATS, 2])
async def test_several_members_share_the_turns_and_each_is_taken_once(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Also where more turns are open than anybody has room for."""
    monkeypatch.setattr(member, "MAX_CONCURRENT_CHATS", room)
    taken: list[str] = []
    states: dict[str, State] = {}

    async with connect_nats(server.endpoint) as client:
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


async def test_a_chat_goes_on_without_its_conductor(server: NatsServer) -> None:
    async with connect_nats(server.endpoint) as client, members(server, answering):
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


async def test_words_of_the_person_during_a_turn_are_heard_by_the_conductor(server: NatsServer) -> None:
    def interrupted(store: NatsStore) -> TakeTurn:
        once = iter([True])

        async def take(call: PendingTurn) -> None:
            if next(once, False):
                await store.append(call.chat, PersonSpoke(text="shorter"), after=None)
            await answering(store)(call)

        return take

    async with connect_nats(server.endpoint) as client, members(server, interrupted):
        await start(await open_nats_store(client), "essay")
        state = await conduct(client, "essay")

    assert words(state) == EXPECTED
    assert [remark.text for remark in state.talk.messages if isinstance(remark, PersonSpoke)] == ["shorter"]


@pytest.mark.parametrize(
    "astray", [TurnOpened(speaker="writer", role="coder"), ChatEnded(reason="done", detail="trust me")]
)
async def test_a_member_that_breaks_the_rules_is_found_out(
    server: NatsServer, astray: TurnOpened | ChatEnded
) -> None:
    def bribed(store: NatsStore) -> TakeTurn:
        async def take(call: PendingTurn) -> None:
            await store.append(call.chat, astray, after=call.opened_seq)

        return take

    async with connect_nats(server.endpoint) as client, members(server, bribed):
        await start(await open_nats_store(client), "essay")
        with pytest.raises(LogDamaged, match="has made the move"):
            await conduct(client, "essay")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ModelFailed("the service is down", "wait"), ModelFailed, "the service is down: wait"),
        (ValueError("seven is not six"), RemoteFailed, "ValueError: seven is not six"),
    ],
)
async def test_a_members_failure_reaches_the_conductor_with_type_and_text(
    server: NatsServer, error: Exception, kind: type[Exception], text: str
) -> None:
    async def failing(_: PendingTurn) -> None:
        raise error

    async with connect_nats(server.endpoint) as client, members(server, lambda _: failing):
        await start(await open_nats_store(client), "essay")
        with pytest.raises(kind, match=text):
            await conduct(client, "essay")


@pytest.mark.parametrize("lost", [False, True])
async def test_a_conductor_is_told_each_event_of_others_once_even_if_no_notice_reaches_it(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    monkeypatch.setattr(deployment, "POLL_SECONDS", 0.2)
    async with connect_nats(server.endpoint) as client, connect_nats(server.endpoint) as other:
        store, theirs = await open_nats_store(client), await open_nats_store(other)
        began = await start(store, "essay")
        async with store.feed("essay") as feed:
            listener = ChatListener(client, store, Feed("essay") if lost else feed, began)
            told: list[Recorded] = []
            for number in range(20):
                (said,) = await theirs.append("essay", PersonSpoke(text=f"{number}"), after=None)
                if number % 5 == 0:  # the conductor's own, of which it knows what came before
                    opened = await store.append("essay", TurnOpened(speaker=f"{number}"), after=began)
                    began = opened[-1].seq
                    continue
                with anyio.fail_after(120):
                    while not (told and told[-1] == said):
                        if isinstance(news := await listener.next(1.0, began), list):
                            told += news

    assert [one.event for one in told] == [
        PersonSpoke(text=f"{number}") for number in range(20) if number % 5 != 0
    ]
