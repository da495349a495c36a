"""The loop. Retries, budgets, approvals and the like wrap what it calls; they are never lines in here."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from septet.domain.events import ChatEnded, Recorded, TurnOpened
from septet.domain.state import State
from septet.errors import BadConfig
from septet.ports import EventStore, Speaker
from septet.runtime.log import Hear, Log
from septet.team.moves import End, Floor

Agents = Mapping[str, Speaker]


async def perform(log: Log, floor: Floor, agents: Agents) -> AsyncGenerator[Recorded, None]:
    """Finish the turn that is open, then let the floor policy name speakers until it ends the chat.

    Starting and resuming are this one call. Every event is stored before it is yielded and before its
    speaker goes on.
    """
    while log.state.ended is None:
        if log.state.turn is not None:
            async with aclosing(speaker(log.state.turn.speaker, agents)(log.state)) as events:
                async for event in events:
                    for recorded in await log.record(event):
                        yield recorded
        move = floor(log.state)
        if isinstance(move, End):
            step = ChatEnded(reason=move.reason, detail=move.detail)
        else:
            step = TurnOpened(speaker=move.speaker)
        for recorded in await log.record(step):
            yield recorded


async def conduct(
    chat: str, store: EventStore, floor: Floor, agents: Agents, hear: Hear = lambda _: None
) -> State:
    """Perform the chat to its end, telling `hear` what is stored; raises what a person must fix."""
    log = await Log.open(store, chat)
    async with aclosing(perform(log, floor, agents)) as performance:
        async for recorded in performance:
            hear(recorded)
    return log.state


def speaker(name: str, agents: Agents) -> Speaker:
    if name not in agents:
        raise BadConfig(f"the team has no '{name}' to give the floor to", f"it has {', '.join(agents)}")
    return agents[name]
