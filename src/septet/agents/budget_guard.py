"""A member that stays within the budgets: that it cannot go on within them is recorded, and ends the chat."""

import math

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from septet.domain.events import BudgetReached, Event
from septet.domain.state import State
from septet.errors import ModelFailed, Overdrawn
from septet.ports import Agent, Record
from septet.team.budgets import time_limit_for


def with_deadline(agent: Agent, name: str) -> Agent:
    """A member whose turn ends when the time that it has left is over, whatever it waits for.

    A server that is away, an answer that drips, a program, packages: all of them are given up.
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
    """What has begun to be stored is stored and known: the time may be over before and after, never in between."""
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
