"""The floor policy of `round_robin`: all members in turn."""

from collections.abc import Sequence

from septet.domain.state import State
from septet.domain.teams import Budget, TeamSpec
from septet.team.floor import Floor, Move, Speak, at_most, rounds_of


def round_robin(speakers: Sequence[str]) -> Floor:
    """All members in turn, without an end."""

    def floor(state: State) -> Move:
        return Speak(speaker=speakers[rounds_of(state) % len(speakers)])

    return floor


def taking_turns(team: TeamSpec, budget: Budget) -> Floor:
    return at_most(budget.rounds, round_robin([member.name for member in team.members]))
