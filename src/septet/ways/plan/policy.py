"""The floor policy of `plan`: only the talk about the plan."""

from septet.domain.state import State
from septet.domain.teams import Budget, TeamSpec
from septet.team.floor import End, Floor, Move, at_most
from septet.ways.iterate.policy import plan_then_iterate


def plan_floor(team: TeamSpec, budget: Budget) -> Floor:
    """Planner and person in turn, until the person approves the plan."""

    def floor(state: State) -> Move:
        return (
            End(reason="accepted", detail="the plan is approved")
            if state.plan.approved
            else plan_then_iterate(state)
        )

    return at_most(budget.rounds, floor, of="planner")
