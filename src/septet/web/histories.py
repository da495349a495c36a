"""Chats that are taken up again: more room after an end."""

from septet.domain.state import State
from septet.domain.teams import Budget
from septet.team.limits import rounds_used


def renewed(state: State) -> Budget:
    """As much room again as the chat began with, on top of what is used up."""
    first, spent = state.team.budget, state.spent
    return Budget(
        rounds=None if first.rounds is None else first.rounds + rounds_used(state),
        tokens=None if first.tokens is None else first.tokens + spent.usage.total,
        cost=None if first.cost is None else first.cost + spent.cost,
        seconds=None if first.seconds is None else first.seconds + state.seconds,
        price=state.budget.price,
    )
