"""The stream of what is stored: one event at a time, errors and ends in their place."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing

import anyio
import pytest
from anyio.lowlevel import checkpoint

from septet.agents.budget_guard import with_deadline, within_budgets
from septet.domain.events import BudgetReached, Event, PersonSpoke, Recorded
from septet.domain.state import State
from septet.domain.teams import Budget
from septet.errors import ModelFailed
from septet.ports import Record, Sequel
from septet.runtime.log import Listen, Log, stream
from septet.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

PATIENCE = 120
PERSON_BRANCH = ["one", "two", "three"]


def words(recorded: Sequence[Recorded]) -> list[str]:
    return [one.event.text for one in recorded if isinstance(one.event, PersonSpoke)]


async def fail() -> None:
    raise ModelFailed("the model is gone", "try again")


class Work:
    """Says three things, does one thing more, and puts everything away."""

    def __init__(self, then: Callable[[], Awaitable[None]] = checkpoint) -> None:
        self.store = MemoryStore()
        self.then = then
        self.put_away = False

    async def __call__(self, listen: Listen) -> None:
        log = await Log.open(self.store, "c", listen)
        try:
            for text in PERSON_BRANCH:
                await log.record(PersonSpoke(text=text))
            await self.then()
        finally:
            with anyio.CancelScope(shield=True):
                await checkpoint()
                self.put_away = True


async def take(events: AsyncIterator[Recorded], seen: list[Recorded]) -> None:
    async for recorded in events:
        seen.append(recorded)  # noqa: PERF401  # what came before an error counts


async def test_the_work_goes_on_when_the_next_event_is_asked_for() -> None:
    work = Work()
    seen: list[Recorded] = []
    async for recorded in stream(work):
        await anyio.wait_all_tasks_blocked()
        assert await work.store.read("c", recorded.seq) == []
        seen.append(recorded)
    assert words(seen) == PERSON_BRANCH
    assert work.put_away


async def test_what_the_work_raises_comes_after_its_events() -> None:
    work = Work(fail)
    seen: list[Recorded] = []
    with pytest.raises(ModelFailed, match="gone"):
        await take(stream(work), seen)
    assert words(seen) == PERSON_BRANCH
    assert work.put_away


async def test_who_stops_asking_ends_the_work_where_it_is() -> None:
    work = Work()
    async with aclosing(stream(work)) as events:
        assert words([await anext(events)]) == ["one"]
    assert work.put_away
    assert words(await work.store.read("c")) == ["one"]


async def test_cancelling_who_asks_ends_the_work_and_waits_for_it() -> None:
    work = Work(anyio.sleep_forever)
    seen: list[Recorded] = []

    async def ask() -> None:
        async with aclosing(stream(work)) as events:
            await take(events, seen)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert words(seen) == PERSON_BRANCH
    assert work.put_away


class SlowStore(MemoryStore):
    """Says that an event is stored when the time of the turn is over."""

    async def append(
        self, chat: str, event: Event, after: int | None, then: Sequel | None = None
    ) -> Sequence[Recorded]:
        news = await super().append(chat, event, after, then)
        await anyio.sleep(0.05)
        return news


async def test_what_a_turn_began_to_store_before_its_time_was_over_is_stored_and_known() -> None:
    log = Log(SlowStore(), State(chat="c", budget=Budget(seconds=0.01)))

    async def speak(state: State, record: Record) -> None:
        assert (await record(PersonSpoke(text="one"))).seq == 1
        await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE):
        last = await within_budgets(with_deadline(speak, "coder"), "coder")(log.state, log.record)
    assert isinstance(last, BudgetReached)
    assert log.state.seq == 1
    assert (await log.record(last)).seq == 2
