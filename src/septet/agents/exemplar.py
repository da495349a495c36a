"""The exemplar: no model, only what has worked before. Asked when the same failure comes again."""

from msgspec.structs import replace

from septet.domain.events import Event, ExampleGiven
from septet.domain.state import State
from septet.ports import Agent, Examples, Record
from septet.team.floor import tries


def exemplar_agent(examples: Examples) -> Agent:
    """Looks the newest failure up; says so where it knows nothing that fits."""

    async def turn(state: State, record: Record) -> Event | None:
        if state.floor.turn is None or state.floor.turn.closed:
            return None
        found = await examples.find(state.work.failure)
        given = ExampleGiven(failure=state.work.failure)
        if found is None:
            return given
        return replace(given, code=found.code, source=found.source, title=found.title)

    return turn


def with_stronger_model(usual: Agent, stronger: Agent, after: int) -> Agent:
    """The usual member until the same code or failure has come `after` times, then a stronger one in its place."""

    async def turn(state: State, record: Record) -> Event | None:
        return await (stronger if tries(state) > after else usual)(state, record)

    return turn
