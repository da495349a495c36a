"""The exemplar: no model, only what has worked before. Asked when the same failure comes again."""

from collections.abc import AsyncGenerator

from septet.domain.events import Event, ExampleGiven
from septet.domain.state import State
from septet.ports import Agent, Examples


def knowing(examples: Examples) -> Agent:
    """Looks the newest failure up; says so where it knows nothing that fits."""

    async def turn(state: State) -> AsyncGenerator[Event, None]:
        if state.turn is None or state.turn.settled:
            return
        found = await examples.find(state.failure)
        if found is None:
            yield ExampleGiven(failure=state.failure)
        else:
            yield ExampleGiven(failure=state.failure, code=found.code, source=found.source, title=found.title)

    return turn


def escalating(usual: Agent, stronger: Agent, after: int) -> Agent:
    """The usual member until the same failure has come `after` times, then a stronger one in its place."""

    async def turn(state: State) -> AsyncGenerator[Event, None]:
        async for event in (stronger if state.failing > after else usual)(state):
            yield event

    return turn
