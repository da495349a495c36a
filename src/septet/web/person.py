"""The person's place in a chat that this server conducts: answered through the log, from any surface."""

from collections.abc import AsyncGenerator

from septet.agents.proxy import Answered, question
from septet.domain.events import Event, StopRequested
from septet.domain.reduce import reduce
from septet.domain.state import State
from septet.ports import Agent, EventStore


def waiting(store: EventStore) -> Agent:
    """A person who answers now or in a day, on the page, on the command line or from elsewhere."""

    async def turn(state: State) -> AsyncGenerator[Event, None]:
        if question(state) is None or state.stop_requested:
            return
        async for recorded in store.watch(state.chat, state.seq):
            state = reduce(state, recorded)
            if question(state) is None or state.stop_requested:
                raise Answered
        yield StopRequested()  # never reached: a watch has no end

    return turn
