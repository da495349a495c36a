"""The loop. Retries, budgets, approvals and the like wrap what it calls; they are never lines in here."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from septet.domain.events import Event, Recorded
from septet.domain.state import State
from septet.errors import BadConfig
from septet.ports import Agent, EventStore, Last
from septet.runtime.log import Hear, Log
from septet.team.floor import Floor, step

Agents = Mapping[str, Agent]


async def perform(log: Log, floor: Floor, agents: Agents) -> AsyncGenerator[Recorded, None]:
    """Finish the turn that is open, then let the floor policy name speakers until it ends the chat.

    Starting and resuming are this one call. Every event is stored before it is yielded and before its speaker goes
    on. It stops before the turn of one who is not among `agents`: whoever has that one goes on from the log.
    """
    while log.state.ended is None:
        last: Event | None = None
        if (turn := log.state.turn) is not None:
            if turn.speaker not in agents:
                return
            async with aclosing(agents[turn.speaker](log.state)) as events:
                async for event in events:
                    if isinstance(event, Last):
                        last = event.event
                        break
                    for recorded in await log.record(event):
                        yield recorded
        for recorded in await log.move(lambda state: step(state, floor(state)), last):
            yield recorded


async def conduct(
    chat: str, store: EventStore, floor: Floor, agents: Agents, hear: Hear = lambda _: None
) -> State:
    """Perform the chat to its end, telling `hear` what is stored; raises what a person must fix."""
    log = await Log.open(store, chat)
    async with aclosing(perform(log, floor, agents)) as performance:
        async for recorded in performance:
            hear(recorded)
    check_ended(log.state, agents)
    return log.state


def check_ended(state: State, agents: Agents) -> None:
    if state.ended is None and state.turn is not None:
        name = state.turn.speaker
        raise BadConfig(f"the team has no '{name}' to give the floor to", f"it has {', '.join(agents)}")
