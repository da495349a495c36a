"""What every store promises of two events that are one step: both are stored or neither, with nothing in between."""

from collections.abc import Sequence

import anyio
import pytest

from septet.domain.events import ChatEnded, PersonSpoke, Recorded, ReviewGiven, StopRequested, TurnOpened
from septet.errors import Conflict
from septet.ports import EventStore

pytestmark = pytest.mark.anyio

REVIEWED = ReviewGiven(version=1, tree="t", verdict="accept")
OPENED = TurnOpened(speaker="coder")


def pass_on(news: Sequence[Recorded]) -> TurnOpened:
    return OPENED


async def begin(store: EventStore, chat: str = "clock") -> int:
    return (await store.append(chat, TurnOpened(speaker="reviewer"), after=0))[-1].seq


async def test_both_are_stored_in_order_and_the_next_event_follows_the_second(store: EventStore) -> None:
    seen = await begin(store)

    review, opened = await store.append("clock", REVIEWED, seen, pass_on)
    (after,) = await store.append("clock", REVIEWED, opened.seq)

    assert (review.event, opened.event) == (REVIEWED, OPENED)
    assert seen < review.seq < opened.seq < after.seq
    assert list(await store.read("clock", seen)) == [review, opened, after]
    assert (await store.chats())[0].seq == after.seq


async def test_the_second_is_made_from_everything_that_was_stored_meanwhile(store: EventStore) -> None:
    seen = await begin(store)
    stop = await store.append("clock", StopRequested(), after=None)

    def decide(news: Sequence[Recorded]) -> TurnOpened | ChatEnded:
        stopped = any(isinstance(one.event, StopRequested) for one in news)
        assert news[-1].event == REVIEWED
        return ChatEnded(reason="stopped") if stopped else OPENED

    news = await store.append("clock", REVIEWED, seen, decide)

    assert [one.event for one in news] == [StopRequested(), REVIEWED, ChatEnded(reason="stopped")]
    assert list(news[:1]) == list(stop)
    assert list(await store.read("clock", seen)) == list(news)


async def test_who_comes_second_stores_neither(store: EventStore) -> None:
    seen = await begin(store)
    step = await store.append("clock", REVIEWED, seen, pass_on)

    with pytest.raises(Conflict, match="another conductor"):
        await store.append("clock", REVIEWED, seen, pass_on)

    assert list(await store.read("clock", seen)) == list(step)


async def test_one_who_has_seen_only_the_first_cannot_go_on_but_sees_the_second(store: EventStore) -> None:
    seen = await begin(store)
    review, opened = await store.append("clock", REVIEWED, seen, pass_on)

    with pytest.raises(Conflict, match="another conductor"):
        await store.append("clock", REVIEWED, review.seq)

    assert list(await store.read("clock", review.seq)) == [opened]
    assert await anext(aiter(store.watch("clock", review.seq))) == opened


async def test_a_second_that_cannot_be_made_leaves_nothing_behind_and_harms_nobody_else(
    store: EventStore,
) -> None:
    seen, other = await begin(store), await begin(store, "other")

    def confused(news: Sequence[Recorded]) -> TurnOpened:
        raise ZeroDivisionError

    async def fail() -> None:
        with pytest.raises(ZeroDivisionError):
            await store.append("clock", REVIEWED, seen, confused)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        tasks.start_soon(store.append, "other", REVIEWED, other, pass_on)

    assert list(await store.read("clock", seen)) == []
    assert len(await store.read("other", other)) == 2


async def test_a_watcher_sees_steps_and_words_in_the_order_of_the_log(store: EventStore) -> None:
    seen = await begin(store)
    views: list[Recorded] = []

    async def watch() -> None:
        async for recorded in store.watch("clock"):
            views.append(recorded)
            if recorded.event == ChatEnded(reason="stopped"):
                return

    async def work() -> None:
        after = seen
        for _ in range(20):
            after = (await store.append("clock", REVIEWED, after, pass_on))[-1].seq
        await store.append("clock", REVIEWED, after, lambda _: ChatEnded(reason="stopped"))

    async def talk() -> None:
        for number in range(5):
            await store.append("clock", PersonSpoke(text=str(number)), after=None)

    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            tasks.start_soon(work)
            tasks.start_soon(talk)

    log = list(await store.read("clock"))
    assert views == log[: len(views)]
    steps = [one.event for one in log if not isinstance(one.event, PersonSpoke)][1:]
    assert steps == [REVIEWED, OPENED] * 20 + [REVIEWED, ChatEnded(reason="stopped")]
