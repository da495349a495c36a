"""Plan until the person approves; then code, run and review until the checks prove that it works."""

from septet.domain.state import State
from septet.domain.teams import RoleSpec, TeamSpec
from septet.team.floor import rounds_of
from septet.ways.iterate.policy import iterate_floor
from septet.ways.way import Way, members_of

TEAM = TeamSpec(
    name="iterate",
    members=(
        RoleSpec(name="planner", role="planner"),
        RoleSpec(name="proxy", role="proxy"),
        RoleSpec(name="coder", role="coder"),
        RoleSpec(name="runner", role="runner"),
        RoleSpec(name="reviewer", role="reviewer"),
        RoleSpec(name="exemplar", role="exemplar"),
    ),
    floor="plan_then_iterate",
    keepsakes=("plan", "versions", "reviews"),
)


def versions_written(state: State) -> int:
    """Count the rounds: turns of the coder."""
    return rounds_of(state, "coder")


WAY = Way(
    name="iterate",
    floor=iterate_floor,
    member=members_of("septet.ways.iterate"),
    thinks=("planner", "coder", "reviewer"),
    needs=("planner", "coder", "runner", "reviewer"),
    may_have=("proxy", "exemplar"),
    rounds_used=versions_written,
    has_reviews=True,
    takes_baseline=True,
    delivers_only_checked=True,
    told_environment=True,
    teams=(TEAM,),
)
