"""Record functions that do not write directly to the chat's log."""

from collections.abc import Callable

from septet.domain.events import Event
from septet.domain.reduce import reduce_event
from septet.domain.state import State
from septet.ports import Agent, Record


class Rehearsal:
    """Folds events without storing them, to see the result of a turn."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.events: list[Event] = []

    async def record(self, event: Event) -> State:
        self.events.append(event)
        self.state = reduce_event(self.state, event)
        return self.state

    async def play(self, agent: Agent) -> State:
        """The state after the agent's turn."""
        last = await agent(self.state, self.record)
        return self.state if last is None else await self.record(last)


def record_through(record: Record, view: Callable[[State], State]) -> Record:
    """A record function that returns `view(state)`, for a member that sees another folder or plan than the log has."""

    async def record_and_view(event: Event) -> State:
        return view(await record(event))

    return record_and_view
