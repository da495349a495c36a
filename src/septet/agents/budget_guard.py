"""Wrappers that keep a member within its budgets: a budget that is reached is recorded and ends the chat."""

import math

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from septet.domain.events import BudgetReached, Event
from septet.domain.state import State
from septet.errors import ModelFailed, Overdrawn
from septet.ports import Agent, Record
from septet.team.budgets import time_limit_for


def with_deadline(agent: Agent, name: str) -> Agent:
    """End the member's turn when its time budget is used up, whatever it waits for.

    A slow model server, a slow answer, a program, an installation: all of them are cancelled.
    """

    async def turn(state: State, record: Record) -> Event | None:
        left = time_limit_for(state, name)
        if left is None:
            return await agent(state, record)
        end = anyio.current_time() + left.remaining
        with anyio.CancelScope(deadline=end) as scope:
            try:
                return await agent(state, without_deadline(record, scope))
            except ModelFailed:
                # A model's own deadline is the member's: on a busy machine it can notice before the scope does.
                if anyio.current_time() < end:
                    raise
        raise Overdrawn(f"{left.limit} passed before the {name} was done")

    return turn


def without_deadline(record: Record, scope: anyio.CancelScope) -> Record:
    """Complete a write that has begun: the deadline applies before and after it, not during it."""
    end = scope.deadline

    async def record_without_deadline(event: Event) -> State:
        await checkpoint_if_cancelled()
        scope.deadline = math.inf
        try:
            return await record(event)
        finally:
            scope.deadline = end

    return record_without_deadline


def within_budgets(agent: Agent, name: str) -> Agent:
    async def turn(state: State, record: Record) -> Event | None:
        try:
            return await agent(state, record)
        except Overdrawn as error:
            return BudgetReached(by=name, why=error.cause)

    return turn
