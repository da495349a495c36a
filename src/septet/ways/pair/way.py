"""A coder and a runner in a group chat, led by a manager who alone may end it."""

from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.ways.pair.policy import pair_floor
from septet.ways.way import Way, members_of

TEAM = TeamSpec(
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
)

WAY = Way(
    name="pair",
    floor=pair_floor,
    member=members_of("septet.ways.pair"),
    thinks=("manager", "coder"),
    needs=("manager", "coder", "runner"),
    may_have=("proxy", "exemplar"),
    told_environment=True,
    teams=(TEAM,),
)
