"""Teams by name or from a `team.yaml`, checked: a mistake is named with its path and line."""

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from septet.common.documents import parse_document, read_text
from septet.common.hosts import host_trouble
from septet.common.values import Value
from septet.domain.packages import Policy
from septet.domain.runs import Network
from septet.domain.teams import ALIASES, ROLES, Edge, MemberSettings, RoleSpec, TeamSettings, TeamSpec
from septet.errors import BadConfig
from septet.settings.group_chats import is_group_chat, parse_group_chat
from septet.team.graph import GUARDS, edges_of, is_graph, speakers_of
from septet.ways.table import TEAMS, all_teams, find_way, way_names, way_of
from septet.ways.way import Way

Keepsake = Literal["plan", "versions", "reviews", "history", "cells"]


class MemberForm(MemberSettings, kw_only=True, forbid_unknown_fields=True):
    """A member as people write it: the name may be left out, one model needs no list."""

    role: str
    name: str = ""
    model: str | tuple[str, ...] = ()
    next: str | Edge | tuple[str | Edge, ...] = ()
    max_tokens: Annotated[int, Meta(gt=0)] | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None


class TeamForm(TeamSettings, forbid_unknown_fields=True):
    """A team as people write it. YAML takes `off` and `on` for truth values."""

    members: tuple[MemberForm, ...]
    name: str = ""
    network: bool | Literal["off", "on"] | tuple[str, ...] = "off"
    packages: bool | Policy = "off"
    keepsakes: tuple[Keepsake, ...] = ()


def load_team(name: str) -> TeamSpec:
    """A built-in team by its name, or the team that a file describes."""
    if name in TEAMS:
        return TEAMS[name]
    path = Path(name)
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        teams = all_teams()
        if name in teams:
            return teams[name]
        raise BadConfig(f"there is no team '{name}'", f"use {', '.join(teams)} or the path of a team.yaml")
    text = read_text(path)
    if is_group_chat(text):
        return parse_group_chat(text, str(path)).team
    return team_of(parse_document(text, TeamForm, str(path)), path)


def team_of(form: TeamForm, path: Path) -> TeamSpec:
    """The team that a file describes."""
    source = str(path)
    way = find_way(check_word(form.floor, way_names(), "floor", source))
    members = check_members([member(one, way, source) for one in form.members], way, source)
    return TeamSpec(
        name=form.name or path.stem,
        members=members,
        network=reachable(form.network, source),
        packages=policy_of(form.packages, source),
        keepsakes=form.keepsakes,
        **settings_of(form, TeamSettings),
    )


def settings_of(form: TeamSettings | MemberSettings, shared: type[Value]) -> dict[str, Any]:
    """What file and log have in common, whatever it is: nobody has to list it here."""
    return {name: getattr(form, name) for name in shared.__struct_fields__}


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


def member(form: MemberForm, way: Way, source: str) -> RoleSpec:
    models = (form.model,) if isinstance(form.model, str) else form.model
    followers = form.next if isinstance(form.next, tuple) else (form.next,)
    if address := next((model for model in models if model.startswith(("url:", "http:", "https:"))), None):
        raise BadConfig(
            f"{source}: a team file may not choose the address '{address}'", "pass it with -m instead"
        )
    return RoleSpec(
        name=form.name or form.role,
        role=check_word(
            ALIASES.get(form.role, form.role), list(dict.fromkeys((*ROLES, *way.roles))), "role", source
        ),
        model=models,
        next=tuple(Edge(to=one) if isinstance(one, str) else one for one in followers),
        **settings_of(form, MemberSettings),
    )


def check_members(members: list[RoleSpec], way: Way, source: str) -> tuple[RoleSpec, ...]:
    names = [one.name for one in members]
    if not names:
        raise BadConfig(f"{source}: the team has no members", "add some")
    if not all(name.strip() for name in names):
        raise BadConfig(f"{source}: a member has no name", "give it one")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadConfig(f"{source}: two members are called '{twice}'", "give one another name")
    check_graph(members, way, source)
    return tuple(members)


def check_graph(members: list[RoleSpec], way: Way, source: str) -> None:
    """Who may follow whom: members by their names, for reasons that are known, and nobody who is never reached."""
    edges = [edge for one in members for edge in one.next]
    if edges and not way.has_graph:
        raise BadConfig(
            f"{source}: the floor {way.name} has an order of its own", "next: is for floor: group_chat"
        )
    names = [one.name for one in members if not one.stands_for_person]
    roles = {one.role for one in members}
    for edge in edges:
        check_word(edge.to, names, "member", f"{source}: next")
        check_word(edge.when, list(GUARDS), "guard", f"{source}: next: {edge.to}: when")
        if edge.when != "always" and not {"coder", "runner"} <= roles:
            cause = f"{source}: '{edge.when}' is about code that is run"
            raise BadConfig(cause, "add a coder and a runner, or leave out when:")
    if way.has_graph and (lost := unreachable_member(members)):
        raise BadConfig(
            f"{source}: nobody gives the floor to '{lost}'", "name it in somebody's next:, or take it out"
        )


def unreachable_member(members: list[RoleSpec]) -> str:
    """The first member that a graph never comes to; nothing where there is none."""
    team = TeamSpec(name="", members=tuple(members))
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
    way = way_of(team)
    needed = way.needs
    if missing := [role for role in needed if team.member(role) is None]:
        cause = f"the team {team.name} has no {missing[0]}, and the floor {team.floor} needs one"
        raise BadConfig(cause, "add a member with that role")
    roles = [one.role for one in team.members]
    heard = roles if way.may_have is None else [*needed, *way.may_have]
    if unheard := next((role for role in roles if role not in heard), None):
        remedy = "take it out, or write a graph: floor: group_chat with next: (docs/teams.md)"
        raise BadConfig(f"{team.name}: the floor {team.floor} gives no turn to a {unheard}", remedy)
    if team.consult and not way.has_reviews:
        raise BadConfig(
            f"{team.name}: the floor {team.floor} has no reviews to ask you before", "take out consult: true"
        )
    if needed and (twice := next((role for role in roles if roles.count(role) > 1), None)):
        raise BadConfig(f"the floor {team.floor} can do with one {twice}", "take the other one out")
    return replace(team, members=tuple(map(with_title, team.members))) if needed else team


def with_title(member: RoleSpec) -> RoleSpec:
    """Called by its role; the name that it was given is what people see."""
    return member if member.name == member.role else replace(member, name=member.role, title=member.name)


def check_word(word: str, words: list[str], what: str, source: str) -> str:
    if word in words:
        return word
    near = get_close_matches(word, words, n=1)
    remedy = f"did you mean '{near[0]}'?" if near else f"use one of {', '.join(words)}"
    raise BadConfig(f"{source}: unknown {what} '{word}'", remedy)
