"""The loop. Retries, budgets, approvals and the like wrap what it calls; they are never lines in here."""

from collections.abc import Mapping
from contextlib import aclosing

from septet.domain.events import ChatEnded, TurnOpened
from septet.domain.state import State
from septet.errors import BadConfig
from septet.ports import Agent, EventStore
from septet.runtime.log import Hear, Log
from septet.team.moves import End, Floor


async def conduct(
    chat: str, store: EventStore, floor: Floor, agents: Mapping[str, Agent], hear: Hear = lambda _: None
) -> State:
    """Fold the log, finish the turn that is open, then let the floor policy name speakers until the end.

    Starting and resuming are this one call. It returns the state at the end, and raises what a person must
    fix; either way everything that happened is in the log.
    """
    log = await Log.open(store, chat, hear)
    while log.state.ended is None:
        if log.state.turn is not None:
            await take_turn(log, agents)
        move = floor(log.state)
        if isinstance(move, End):
            await log.record(ChatEnded(reason=move.reason, detail=move.detail))
        else:
            await log.record(TurnOpened(speaker=move.speaker))
    return log.state


async def take_turn(log: Log, agents: Mapping[str, Agent]) -> None:
    """The speaker's events, each stored before the speaker goes on."""
    assert log.state.turn is not None
    speaker = log.state.turn.speaker
    if speaker not in agents:
        raise BadConfig(f"the team has no '{speaker}' to give the floor to", f"it has {', '.join(agents)}")
    async with aclosing(agents[speaker](log.state)) as events:
        async for event in events:
            await log.record(event)
