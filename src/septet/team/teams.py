"""The teams that come with Septet, as data."""

from septet.domain.teams import Budget, RoleSpec, TeamSpec

STARTS_WITH_MAIN = (
    "The program is a project that starts with main.py: write `run: python main.py`. "
    "Its tests stand in files like test_main.py."
)

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
            RoleSpec(name="exemplar", role="exemplar"),
        ),
        floor="plan_then_iterate",
        keepsakes=("plan", "versions", "reviews"),
    ),
    "pair": TeamSpec(
        name="pair",
        members=(
            RoleSpec(name="manager", role="manager"),
            RoleSpec(name="coder", role="coder"),
            RoleSpec(name="runner", role="runner"),
            RoleSpec(name="exemplar", role="exemplar"),
        ),
        floor="pair",
        budget=Budget(rounds=30),
        keepsakes=("history",),
    ),
    "autocoder": TeamSpec(
        name="autocoder",
        members=(
            RoleSpec(name="planner", role="planner", instructions=STARTS_WITH_MAIN),
            RoleSpec(name="proxy", role="proxy"),
            RoleSpec(name="runner", role="runner"),
            RoleSpec(name="coder", role="coder"),
            RoleSpec(name="reviewer", role="reviewer"),
        ),
        floor="reason_and_act",
        budget=Budget(rounds=20),
        approve="auto",
    ),
    "assistant": TeamSpec(
        name="assistant",
        members=(RoleSpec(name="proxy", role="proxy"), RoleSpec(name="assistant", role="coder")),
        floor="direct",
        budget=Budget(rounds=40),
    ),
}
