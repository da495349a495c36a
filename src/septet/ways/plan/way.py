"""Agree on a plan with the person, and stop there."""

from septet.domain.state import State
from septet.domain.teams import RoleSpec, TeamSpec
from septet.team.floor import rounds_of
from septet.ways.plan.policy import plan_floor
from septet.ways.way import Way, members_of

TEAM = TeamSpec(
    name="plan",
    members=(RoleSpec(name="planner", role="planner"), RoleSpec(name="proxy", role="proxy")),
    floor="plan",
)


def plans_proposed(state: State) -> int:
    return rounds_of(state, "planner")


WAY = Way(
    name="plan",
    floor=plan_floor,
    member=members_of("septet.ways.iterate"),
    thinks=("planner",),
    needs=("planner",),
    may_have=("proxy",),
    rounds_used=plans_proposed,
    told_environment=True,
    teams=(TEAM,),
)
