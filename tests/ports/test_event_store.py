"""What the EventStore port promises, of every adapter.

Sequences of a chat rise; that they have no gaps is a property of the SQLite and memory stores which nobody may
rely on: a store for many machines numbers all chats together.
"""

import anyio
import pytest
from ports.chats import STARTED, begin, conduct, events, fresh, spoke, turn

from septet.domain.events import DecisionRecorded, Event, Recorded
from septet.ports import EventStore

pytestmark = pytest.mark.anyio


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


async def test_the_list_names_every_chat_and_the_one_that_moved_last_comes_first(store: EventStore) -> None:
    first, second = fresh(), fresh()
    seen = await begin(store, first)
    await begin(store, second)
    last = (await store.append(first, turn("coder"), after=seen))[-1]

    heads = await store.chats()

    assert [head.chat for head in heads] == [first, second]
    assert await store.chats(1) == heads[:1]
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
    with anyio.fail_after(120):
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
