"""Change a project by one action at a time; after each it is validated, tested and run without a model."""

from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.ways.autocoder.policy import autocoder_floor
from septet.ways.iterate.way import versions_written
from septet.ways.prompts import prompt_text
from septet.ways.way import Way, members_of

TEAM = TeamSpec(
    name="autocoder",
    members=(
        RoleSpec(
            name="planner",
            role="planner",
            instructions=prompt_text("septet.ways.autocoder", "planner").rstrip(),
        ),
        RoleSpec(name="proxy", role="proxy"),
        RoleSpec(name="runner", role="runner"),
        RoleSpec(name="coder", role="coder"),
        RoleSpec(name="reviewer", role="reviewer"),
    ),
    floor="reason_and_act",
    budget=Budget(rounds=20),
    approve="auto",
)

WAY = Way(
    name="autocoder",
    floor=autocoder_floor,
    member=members_of("septet.ways.autocoder"),
    thinks=("planner", "coder", "reviewer"),
    needs=("planner", "runner", "coder", "reviewer"),
    may_have=("proxy",),
    rounds_used=versions_written,
    told_environment=True,
    teams=(TEAM,),
)
