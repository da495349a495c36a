"""What a member may do within its time, and what is said when that is over."""

import time

import pytest

from septet.agents.budget_guard import with_deadline, within_budgets
from septet.domain.events import BudgetReached, Event
from septet.domain.state import State
from septet.domain.teams import Budget
from septet.errors import ModelFailed
from septet.ports import Record

pytestmark = pytest.mark.anyio


async def turn_of(seconds: float, busy: float) -> Event | None:
    """A member's turn of `seconds` in all, whose model fails after it kept the whole process busy."""

    async def fails(_state: State, _record: Record) -> Event | None:
        time.sleep(busy)  # noqa: ASYNC251 - so that no cancellation comes first
        raise ModelFailed("the answer took longer than its deadline", "resume the chat later")

    async def record(_event: Event) -> State:
        raise AssertionError

    state = State(chat="c", budget=Budget(seconds=seconds))
    return await within_budgets(with_deadline(fails, "planner"), "planner")(state, record)


async def test_a_model_that_fails_because_the_time_is_over_ends_the_chat_by_its_budget() -> None:
    ended = await turn_of(0.01, 0.02)

    assert isinstance(ended, BudgetReached)
    assert "the time budget of" in ended.why


async def test_a_model_that_fails_before_the_time_is_over_has_failed() -> None:
    with pytest.raises(ModelFailed):
        await turn_of(600.0, 0.0)
