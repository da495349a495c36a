"""The main loop. Retries, budgets, approvals and the like wrap what it calls; they are never lines in here."""

from collections.abc import Mapping

from septet.domain.state import State
from septet.errors import BadConfig
from septet.ports import Agent
from septet.runtime.log import Log
from septet.team.floor import Floor, step

Agents = Mapping[str, Agent]


async def perform(log: Log, floor: Floor, agents: Agents) -> None:
    """Finish the turn that is open, then let the floor policy name speakers until it ends the chat.

    Starting and resuming are this one call. It returns before the turn of a member that is not in `agents`: the
    machine that runs that member continues from the log.
    """
    while log.state.ended is None:
        last = None
        if (turn := log.state.floor.turn) is not None:
            if turn.speaker not in agents:
                return
            last = await agents[turn.speaker](log.state, log.record)
        await log.move(lambda state: step(state, floor(state)), last)


def check_ended(state: State, agents: Agents) -> None:
    """Raise BadConfig if the loop stopped before the turn of a member that no machine runs."""
    if state.ended is None and state.floor.turn is not None:
        name = state.floor.turn.speaker
        raise BadConfig(
            f"it is the turn of '{name}', but the team has no such member", f"it has {', '.join(agents)}"
        )
