"""A member that stays within the budgets: that it cannot go on within them is recorded, and ends the chat."""

import math
from contextlib import aclosing

import anyio

from septet.domain.events import BudgetReached
from septet.domain.state import State
from septet.errors import Overdrawn
from septet.ports import Acts, Agent, Last
from septet.team.budgets import time_for


def in_time(agent: Agent, name: str) -> Agent:
    """A member whose turn ends when the time that it has left is over, whatever it waits for.

    A server that is away, an answer that drips, a program, packages: all of them are given up.
    """

    async def turn(state: State) -> Acts:
        left = time_for(state, name)
        end = anyio.current_time() + left.left if left else math.inf
        async with aclosing(agent(state)) as events:
            while True:
                event = None
                # One scope for each step: none may be open while this generator waits for its caller.
                with anyio.CancelScope(deadline=end) as scope:
                    event = await anext(events, None)
                if left is not None and scope.cancelled_caught:
                    raise Overdrawn(f"{left.limit} passed before the {name} was done")
                if event is None:
                    return
                yield event

    return turn


def sparing(agent: Agent, name: str) -> Agent:
    async def turn(state: State) -> Acts:
        why = ""
        async with aclosing(agent(state)) as events:
            try:
                async for event in events:
                    yield event
            except Overdrawn as error:
                why = error.cause
        if why:
            yield Last(event=BudgetReached(by=name, why=why))

    return turn
