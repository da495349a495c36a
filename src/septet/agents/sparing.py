"""A member that is not asked for an answer which would exceed a budget: that is recorded, and ends the chat."""

from contextlib import aclosing

from septet.domain.events import BudgetReached
from septet.domain.state import State
from septet.errors import Overdrawn
from septet.ports import Acts, Agent, Last


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
