"""What the EventStore port promises, of every adapter.

Sequences of a chat rise; that they have no gaps is a property of the SQLite and memory stores which nobody may
rely on: a store for many machines numbers all chats together.
"""

from collections.abc import Sequence
from itertools import count
from operator import attrgetter

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from septet.domain.events import ChatStarted, DecisionRecorded, Event, PersonSpoke, Recorded, TurnOpened
from septet.domain.teams import RoleSpec, TeamSpec
from septet.errors import Conflict
from septet.ports import EventStore

pytestmark = pytest.mark.anyio

STARTED = ChatStarted(
    goal="draw a clock — in ünïcode ✓",
    team=TeamSpec(name="pair", members=(RoleSpec(name="coder", role="coder"),)),
    workspace="somewhere",
)
NAMES = count()


def fresh() -> str:
    """A chat that no test has used."""
    return f"chat-{next(NAMES)}"


def turn(speaker: object) -> TurnOpened:
    return TurnOpened(speaker=str(speaker))


def spoke(text: object) -> PersonSpoke:
    return PersonSpoke(text=str(text))


def events(log: Sequence[Recorded]) -> list[Event]:
    return [recorded.event for recorded in log]


async def begin(store: EventStore, chat: str) -> int:
    return (await store.append(chat, STARTED, after=0))[-1].seq


async def conduct(store: EventStore, chat: str, after: int, number: int) -> int:
    """Append that many turns one after the other."""
    for speaker in range(number):
        after = (await store.append(chat, turn(speaker), after))[-1].seq
    return after


async def test_what_was_appended_is_read_back_as_it_was_returned(store: EventStore) -> None:
    first = await store.append("clock", STARTED, after=0)
    second = await store.append("clock", turn("coder"), after=first[-1].seq)

    assert events(first) == [STARTED]
    assert first[0].chat == "clock"
    assert first[0].seq > 0
    assert list(await store.read("clock")) == [*first, *second]


async def test_sequences_and_times_never_go_back(store: EventStore) -> None:
    chat = fresh()
    await conduct(store, chat, await begin(store, chat), 20)

    log = await store.read(chat)

    assert [recorded.seq for recorded in log] == sorted({recorded.seq for recorded in log})
    assert [recorded.at for recorded in log] == sorted(recorded.at for recorded in log)


async def test_reading_starts_after_the_given_sequence(store: EventStore) -> None:
    chat = fresh()
    last = await conduct(store, chat, await begin(store, chat), 5)
    log = await store.read(chat)

    for place, recorded in enumerate(log, start=1):
        assert list(await store.read(chat, after=recorded.seq)) == list(log[place:])
    assert list(await store.read(chat, after=last + 1000)) == []


async def test_an_unknown_chat_is_empty(store: EventStore) -> None:
    assert list(await store.read(fresh())) == []


async def test_an_empty_store_lists_nothing(store: EventStore) -> None:
    assert list(await store.chats()) == []


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


async def test_the_list_names_every_chat_and_the_one_that_moved_last_comes_first(store: EventStore) -> None:
    first, second = fresh(), fresh()
    seen = await begin(store, first)
    await begin(store, second)
    last = (await store.append(first, turn("coder"), after=seen))[-1]

    heads = await store.chats()

    assert [head.chat for head in heads] == [first, second]
    assert heads[0].seq == last.seq
    assert heads[0].changed == last.at
    assert heads[0].started == (await store.read(first))[0].at


@pytest.mark.parametrize("name", ["a.b", "a b", "*", ">", "ünï/ç", "A", "a", "'; --", "x" * 200, "%2e"])
async def test_any_name_is_a_chat_of_its_own(store: EventStore, name: str) -> None:
    await store.append(name, STARTED, after=0)
    await store.append(name + "2", spoke("not yours"), after=None)

    assert events(await store.read(name)) == [STARTED]
    assert {head.chat for head in await store.chats()} == {name, name + "2"}


async def test_an_event_of_a_megabyte_is_kept(store: EventStore) -> None:
    chat, long = fresh(), spoke("x" * 1_000_000)
    await begin(store, chat)
    await store.append(chat, long, after=None)

    assert (await store.read(chat))[-1].event == long


async def test_many_chats_append_at_once(store: EventStore) -> None:
    chats = [fresh() for _ in range(40)]

    async def run(chat: str) -> None:
        await conduct(store, chat, await begin(store, chat), 8)

    async with anyio.create_task_group() as group:
        for chat in chats:
            group.start_soon(run, chat)

    expected = [STARTED, *(turn(number) for number in range(8))]
    for chat in chats:
        assert events(await store.read(chat)) == expected
    assert {head.chat for head in await store.chats()} == set(chats)


async def test_a_conductor_that_is_cancelled_stops_appending(store: EventStore) -> None:
    chat = fresh()
    seen = await begin(store, chat)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(conduct, store, chat, seen, 10**9)
            async for recorded in store.watch(chat):
                if recorded.event == turn(5):
                    break
            group.cancel_scope.cancel()

    log = await store.read(chat)
    assert events(log) == [STARTED, *(turn(number) for number in range(len(log) - 1))]


async def watched(store: EventStore, chat: str, after: int, until: Event) -> list[Recorded]:
    """Everything a watcher sees up to a certain event."""
    seen: list[Recorded] = []
    async for recorded in store.watch(chat, after):
        seen.append(recorded)
        if recorded.event == until:
            break
    return seen


@pytest.mark.parametrize("head_start", [0, 1, 7])
async def test_watching_has_no_gap_and_no_double_while_others_append(
    store: EventStore, head_start: int
) -> None:
    chat, last = fresh(), DecisionRecorded(by="manager", what="stop", why="enough")
    seen = await conduct(store, chat, await begin(store, chat), head_start)
    log = await store.read(chat)
    starts = [0, log[len(log) // 2].seq, seen]
    views: dict[int, list[Recorded]] = {}

    async def look(number: int, after: int) -> None:
        views[number] = await watched(store, chat, after, last)

    async def talk() -> None:
        for number in range(15):
            await store.append(chat, spoke(number), after=None)

    async with anyio.create_task_group() as watchers:
        for number, after in enumerate(starts):
            watchers.start_soon(look, number, after)
        async with anyio.create_task_group() as writers:
            writers.start_soon(talk)
            writers.start_soon(conduct, store, chat, seen, 15)
        watchers.start_soon(look, len(starts), 0)
        end = (await store.read(chat))[-1].seq
        await store.append(chat, last, after=end)

    for number, after in enumerate([*starts, 0]):
        assert views[number] == list(await store.read(chat, after))


async def test_watching_an_unknown_chat_waits_for_its_first_event(store: EventStore) -> None:
    chat, views = fresh(), list[list[Recorded]]()

    async def look() -> None:
        views.append(await watched(store, chat, 0, STARTED))

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        await anyio.wait_all_tasks_blocked()
        await begin(store, fresh())
        await begin(store, chat)

    assert [events(view) for view in views] == [[STARTED]]


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
