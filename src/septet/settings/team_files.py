"""Teams by name or from a `team.yaml`, checked: a mistake is named with its path and line."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from septet.common.documents import parse_document, read_text
from septet.common.hosts import host_trouble
from septet.common.values import Value
from septet.domain.packages import Policy
from septet.domain.runs import Limits, Network
from septet.domain.teams import ALIASES, ROLES, Allowance, Budget, Edge, RoleSpec, RunAs, TeamSpec
from septet.errors import BadConfig
from septet.settings.group_chats import is_group_chat, parse_group_chat
from septet.team.graph import GUARDS, edges_of, is_graph, speakers_of
from septet.team.teams import TEAMS
from septet.ways.iterate.policy import FLOORS

NEEDED = {
    "plan": ("planner",),
    "plan_then_iterate": ("planner", "coder", "runner", "reviewer"),
    "reason_and_act": ("planner", "runner", "coder", "reviewer"),
    "pair": ("manager", "coder", "runner"),
}
"""Roles that a floor cannot do without."""
HEARD = {
    "plan": ("planner", "proxy"),
    "plan_then_iterate": (*NEEDED["plan_then_iterate"], "proxy", "exemplar"),
    "reason_and_act": (*NEEDED["reason_and_act"], "proxy"),
    "pair": (*NEEDED["pair"], "proxy", "exemplar"),
}
"""Roles that a floor gives a turn to, where it goes by role."""
REVIEWS = ("plan_then_iterate",)
"""Floors that ask the person before a review where the team wants it."""


class MemberForm(Value, forbid_unknown_fields=True):
    """A member as people write it: the name may be left out, one model needs no list."""

    role: str
    name: str = ""
    model: str | tuple[str, ...] = ()
    instructions: str = ""
    temperature: float | None = None
    candidates: int = 1
    stronger: str = ""
    form: Literal["text", "small"] = "text"
    budget: Allowance = Allowance()
    max_tokens: Annotated[int, Meta(gt=0)] | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None
    next: str | Edge | tuple[str | Edge, ...] = ()


class TeamForm(Value, forbid_unknown_fields=True):
    members: tuple[MemberForm, ...]
    name: str = ""
    floor: str = "plan_then_iterate"
    budget: Budget = Budget()
    limits: Limits = Limits()
    approve: Literal["ask", "auto"] = "ask"
    stepwise: bool = False
    consult: bool = False
    keepsakes: tuple[Literal["plan", "versions", "reviews", "history", "cells"], ...] = ()
    refusals: int = 3
    help_after: int = 2
    stuck_after: int = 3
    please_after: int = 3
    run: RunAs = "auto"
    network: bool | Literal["off", "on"] | tuple[str, ...] = "off"
    packages: bool | Policy = "off"
    warm: tuple[str, ...] = ()
    tests: str = ""
    languages: Mapping[str, str] = {}


def load_team(name: str) -> TeamSpec:
    """A built-in team by its name, or the team that a file describes."""
    if name in TEAMS:
        return TEAMS[name]
    path = Path(name)
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        raise BadConfig(f"there is no team '{name}'", f"use {', '.join(TEAMS)} or the path of a team.yaml")
    text = read_text(path)
    if is_group_chat(text):
        return parse_group_chat(text, str(path)).team
    form = parse_document(text, TeamForm, str(path))
    return TeamSpec(
        name=form.name or path.stem,
        members=checked([member(one, str(path)) for one in form.members], form.floor, str(path)),
        floor=known(form.floor, list(FLOORS), "floor", str(path)),
        budget=form.budget,
        limits=form.limits,
        approve=form.approve,
        stepwise=form.stepwise,
        consult=form.consult,
        keepsakes=form.keepsakes,
        help_after=form.help_after,
        please_after=form.please_after,
        refusals=form.refusals,
        stuck_after=form.stuck_after,
        run=form.run,
        network=reachable(form.network, str(path)),
        packages=policy_of(form.packages, str(path)),
        warm=form.warm,
        tests=form.tests,
        languages=form.languages,
    )


def reachable(network: bool | Network, source: str) -> Network:
    """What programs can reach; YAML takes `off` and `on` for truth values."""
    if isinstance(network, bool):
        return "on" if network else "off"
    return network if isinstance(network, str) else checked_hosts(network, source) or "off"


def policy_of(packages: bool | Policy, source: str) -> Policy:
    """YAML takes `off` for a truth value, and `on` says too little."""
    if packages is True:
        raise BadConfig(f"{source}: packages cannot be 'on'", "write off, ask or auto")
    return "off" if packages is False else packages


def checked_hosts(hosts: tuple[str, ...], source: str) -> tuple[str, ...]:
    if troubles := [trouble for host in hosts if (trouble := host_trouble(host))]:
        raise BadConfig(f"{source}: {troubles[0]}", "write api.example.org, or name:port for another port")
    return tuple(host.lower() for host in hosts)


def member(form: MemberForm, source: str) -> RoleSpec:
    models = (form.model,) if isinstance(form.model, str) else form.model
    followers = form.next if isinstance(form.next, tuple) else (form.next,)
    if address := next((model for model in models if model.startswith("url:")), None):
        raise BadConfig(
            f"{source}: a team file may not choose the address '{address}'", "pass it with -m instead"
        )
    return RoleSpec(
        name=form.name or form.role,
        role=known(ALIASES.get(form.role, form.role), list(ROLES), "role", source),
        model=models,
        instructions=form.instructions,
        temperature=form.temperature,
        candidates=form.candidates,
        stronger=form.stronger,
        form=form.form,
        budget=form.budget,
        max_tokens=form.max_tokens,
        timeout=form.timeout,
        next=tuple(Edge(to=one) if isinstance(one, str) else one for one in followers),
    )


def checked(members: list[RoleSpec], floor: str, source: str) -> tuple[RoleSpec, ...]:
    names = [one.name for one in members]
    if not names:
        raise BadConfig(f"{source}: the team has no members", "add some")
    if not all(name.strip() for name in names):
        raise BadConfig(f"{source}: a member has no name", "give it one")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadConfig(f"{source}: two members are called '{twice}'", "give one another name")
    check_graph(members, floor, source)
    return tuple(members)


def check_graph(members: list[RoleSpec], floor: str, source: str) -> None:
    """Who may follow whom: members by their names, for reasons that are known, and nobody who is never reached."""
    edges = [edge for one in members for edge in one.next]
    if edges and floor != "group_chat":
        raise BadConfig(
            f"{source}: the floor {floor} has an order of its own", "next: is for floor: group_chat"
        )
    names = [one.name for one in members if one.role != "proxy"]
    roles = {one.role for one in members}
    for edge in edges:
        known(edge.to, names, "member", f"{source}: next")
        known(edge.when, list(GUARDS), "guard", f"{source}: next: {edge.to}: when")
        if edge.when != "always" and not {"coder", "runner"} <= roles:
            cause = f"{source}: '{edge.when}' is about code that is run"
            raise BadConfig(cause, "add a coder and a runner, or leave out when:")
    if floor == "group_chat" and (lost := unreached(members)):
        raise BadConfig(
            f"{source}: nobody gives the floor to '{lost}'", "name it in somebody's next:, or take it out"
        )


def unreached(members: list[RoleSpec]) -> str:
    """The first member that a graph never comes to; nothing where there is none."""
    team = TeamSpec(name="", members=tuple(members), floor="group_chat")
    names = [one.name for one in speakers_of(team)]
    if not names or not is_graph(team):
        return ""
    edges, manager = edges_of(team), team.member("manager")
    reached, waiting = set[str](), [names[0]]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += [edge.to for edge in edges[one]]
            waiting += [manager.name] if manager and len(edges[one]) > 1 else []
    return next((name for name in names if name not in reached), "")


def complete(team: TeamSpec) -> TeamSpec:
    """The team, if it can work. Floors that go by role need those roles, once each, and call them so."""
    needed = NEEDED.get(team.floor, ())
    if missing := [role for role in needed if team.member(role) is None]:
        cause = f"the team {team.name} has no {missing[0]}, and the floor {team.floor} needs one"
        raise BadConfig(cause, "add a member with that role")
    roles = [one.role for one in team.members]
    if unheard := next((role for role in roles if role not in HEARD.get(team.floor, roles)), None):
        remedy = "take it out, or write a graph: floor: group_chat with next: (docs/teams.md)"
        raise BadConfig(f"{team.name}: the floor {team.floor} gives no turn to a {unheard}", remedy)
    if team.consult and team.floor not in REVIEWS:
        raise BadConfig(
            f"{team.name}: the floor {team.floor} has no reviews to ask you before", "take out consult: true"
        )
    if needed and (twice := next((role for role in roles if roles.count(role) > 1), None)):
        raise BadConfig(f"the floor {team.floor} can do with one {twice}", "take the other one out")
    return replace(team, members=tuple(map(titled, team.members))) if needed else team


def titled(member: RoleSpec) -> RoleSpec:
    """Called by its role; the name that it was given is what people see."""
    return member if member.name == member.role else replace(member, name=member.role, title=member.name)


def known(word: str, words: list[str], what: str, source: str) -> str:
    if word in words:
        return word
    near = get_close_matches(word, words, n=1)
    remedy = f"did you mean '{near[0]}'?" if near else f"use one of {', '.join(words)}"
    raise BadConfig(f"{source}: unknown {what} '{word}'", remedy)
