"""Everybody in turn, whatever they do."""

from collections.abc import Sequence

from septet.domain.state import State
from septet.domain.teams import Budget, TeamSpec
from septet.team.floor import Floor, Move, Speak, at_most, rounds_of


def round_robin(speakers: Sequence[str]) -> Floor:
    """Everybody in turn, for ever."""

    def floor(state: State) -> Move:
        return Speak(speaker=speakers[rounds_of(state) % len(speakers)])

    return floor


def taking_turns(team: TeamSpec, budget: Budget) -> Floor:
    return at_most(budget.rounds, round_robin([member.name for member in team.members]))
