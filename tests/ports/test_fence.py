"""The fence of the EventStore port, of every adapter: who may append to a chat, and after what."""

from operator import attrgetter

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ports.chats import STARTED, begin, events, fresh, spoke, turn

from septet.errors import Conflict
from septet.ports import EventStore

pytestmark = pytest.mark.anyio


async def test_a_second_conductor_gets_a_conflict_and_stores_nothing(store: EventStore) -> None:
    chat = fresh()
    seen = await begin(store, chat)
    await store.append(chat, turn("winner"), after=seen)

    with pytest.raises(Conflict, match="another conductor"):
        await store.append(chat, turn("loser"), after=seen)

    assert events(await store.read(chat)) == [STARTED, turn("winner")]


async def test_a_name_can_be_started_once(store: EventStore) -> None:
    chat = fresh()
    await begin(store, chat)

    with pytest.raises(Conflict, match="exists already"):
        await store.append(chat, STARTED, after=0)

    assert len(await store.read(chat)) == 1


async def test_a_conductor_that_has_seen_more_than_the_log_holds_gets_a_conflict(store: EventStore) -> None:
    chat = fresh()
    seen = await begin(store, chat)

    with pytest.raises(Conflict):
        await store.append(chat, turn("from elsewhere"), after=seen + 7)

    assert len(await store.read(chat)) == 1


async def test_words_of_the_person_come_in_between_and_are_handed_to_the_conductor(store: EventStore) -> None:
    chat = fresh()
    seen = await begin(store, chat)
    said = [*await store.append(chat, spoke("wait"), None), *await store.append(chat, spoke("go on"), None)]

    since = await store.append(chat, turn("coder"), after=seen)

    assert events(since) == [spoke("wait"), spoke("go on"), turn("coder")]
    assert list(since[:2]) == said
    assert list(since) == list(await store.read(chat, after=seen))


async def test_a_conductor_may_go_on_from_the_words_of_the_person(store: EventStore) -> None:
    chat = fresh()
    await begin(store, chat)
    heard = (await store.append(chat, spoke("blue hands, please"), after=None))[-1].seq

    since = await store.append(chat, turn("coder"), after=heard)

    assert events(since) == [turn("coder")]


async def test_words_of_the_person_return_only_themselves(store: EventStore) -> None:
    chat = fresh()
    await begin(store, chat)
    await store.append(chat, spoke("first"), after=None)

    assert events(await store.append(chat, spoke("second"), after=None)) == [spoke("second")]


async def test_a_conductor_that_missed_another_conductor_conflicts_whatever_the_person_said(
    store: EventStore,
) -> None:
    chat = fresh()
    seen = await begin(store, chat)
    await store.append(chat, turn("other"), after=seen)
    await store.append(chat, spoke("hello"), after=None)

    with pytest.raises(Conflict):
        await store.append(chat, turn("late"), after=seen)


async def test_of_many_rival_conductors_exactly_one_wins_each_turn(store: EventStore) -> None:
    chat = fresh()
    seen = await begin(store, chat)
    outcomes: list[str] = []

    async def rival(name: str, after: int) -> None:
        try:
            await store.append(chat, turn(name), after)
            outcomes.append("won")
        except Conflict:
            outcomes.append("lost")

    for _ in range(3):
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(rival, f"rival-{number}", seen)
        seen = (await store.read(chat))[-1].seq

    assert (outcomes.count("won"), outcomes.count("lost")) == (3, 57)
    assert len(await store.read(chat)) == 4


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["conduct", "step", "speak", "read"]), st.integers(0, 4)), max_size=25
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_any_course_of_appends_and_reads_obeys_the_fence(store: EventStore, steps: list[Step]) -> None:
    """`back` is how many events the conductor has not seen: what it may do follows from what those are."""
    chat = fresh()
    log = list(await store.append(chat, STARTED, after=0))
    fenced = [True]
    for number, (action, back) in enumerate(steps):
        place = max(1, len(log) - back)
        after = log[place - 1].seq
        if action == "read":
            assert list(await store.read(chat, after)) == log[place:]
        elif action == "speak":
            log += await store.append(chat, spoke(number), after=None)
            fenced.append(False)
        elif any(fenced[place:]):
            with pytest.raises(Conflict):
                await store.append(chat, turn(number), after)
        else:
            sequels = 1 if action == "step" else 0
            since = await store.append(
                chat, turn(number), after, (lambda _: turn("next")) if sequels else None
            )
            assert list(since[: -1 - sequels]) == log[place:]
            log += since[-1 - sequels :]
            fenced += [True] * (1 + sequels)
    assert sorted(log, key=attrgetter("seq")) == log
    assert list(await store.read(chat)) == log
