"""The teams that come with Septet, as data."""

from septet.domain.teams import RoleSpec, TeamSpec

TEAMS = {
    "plan": TeamSpec(
        name="plan",
        members=(RoleSpec(name="planner", role="planner"), RoleSpec(name="proxy", role="proxy")),
        floor="plan",
    ),
    "iterate": TeamSpec(
        name="iterate",
        members=(
            RoleSpec(name="planner", role="planner"),
            RoleSpec(name="proxy", role="proxy"),
            RoleSpec(name="coder", role="coder"),
            RoleSpec(name="runner", role="runner"),
            RoleSpec(name="reviewer", role="reviewer"),
        ),
        floor="plan_then_iterate",
        keepsakes=("plan", "versions", "reviews"),
    ),
}
