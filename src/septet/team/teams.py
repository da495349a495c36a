"""The teams that come with Septet, as data."""

from septet.domain.teams import Budget, RoleSpec, TeamSpec

STARTS_WITH_MAIN = (
    "The program is a project that starts with main.py: write `run: python main.py`. "
    "Its tests stand in files like test_main.py."
)

WRITES = "You are the writer. Answer with one sentence of content each time, improved by the feedback so far."
EDITS = "You are the editor. Give feedback on the writer's newest sentence in at most 15 words."

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
        keepsakes=("history", "cells"),
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
    "writer-editor": TeamSpec(
        name="writer-editor",
        members=(
            RoleSpec(name="writer", role="writer", instructions=WRITES),
            RoleSpec(name="editor", role="editor", instructions=EDITS),
            RoleSpec(name="proxy", role="proxy"),
        ),
        floor="group_chat",
        budget=Budget(rounds=6),
        keepsakes=("history",),
    ),
    "assistant": TeamSpec(
        name="assistant",
        members=(RoleSpec(name="proxy", role="proxy"), RoleSpec(name="assistant", role="coder")),
        floor="direct",
        budget=Budget(rounds=40),
    ),
}
