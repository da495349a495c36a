"""A proxy with a model talks with the person and sends the work on to assistants with tools."""

from septet.domain.teams import ROLES, Budget, RoleSpec, TeamSpec
from septet.ways.assistant.policy import answer_text, assistant_floor, wants_work
from septet.ways.way import Way, members_of

TEAM = TeamSpec(
    name="assistant",
    members=(RoleSpec(name="proxy", role="proxy"), RoleSpec(name="assistant", role="coder")),
    floor="direct",
    budget=Budget(rounds=40),
)

WAY = Way(
    name="assistant",
    floor=assistant_floor,
    member=members_of("septet.ways.assistant"),
    thinks=ROLES,
    result_text=answer_text,
    delivers=wants_work,
    told_environment=True,
    delivers_only_checked=True,
    teams=(TEAM,),
)
