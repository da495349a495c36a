"""Members who talk: in turn, by a graph of who may follow whom, or led by a manager."""

from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.ways.group_chat.policy import last_words, talk_floor, turns_spoken
from septet.ways.prompts import prompt_text
from septet.ways.way import Way, members_of


def talker(role: str) -> RoleSpec:
    return RoleSpec(name=role, role=role, instructions=prompt_text("septet.ways.group_chat", role).rstrip())


TEAM = TeamSpec(
    name="writer-editor",
    members=(talker("writer"), talker("editor"), RoleSpec(name="proxy", role="proxy")),
    floor="group_chat",
    budget=Budget(rounds=6),
    keepsakes=("history",),
)

WAY = Way(
    name="group_chat",
    floor=talk_floor,
    member=members_of("septet.ways.group_chat"),
    thinks=("planner", "coder", "reviewer", "manager", "writer", "editor"),
    rounds_used=turns_spoken,
    result_text=last_words,
    is_talk=True,
    has_graph=True,
    teams=(TEAM,),
)
