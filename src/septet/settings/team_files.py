"""Loads and checks teams, by name or from a `team.yaml`; errors name the path and the line."""

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from septet.common.documents import parse_document, read_text
from septet.common.hosts import host_error
from septet.common.values import Value
from septet.domain.packages import Policy
from septet.domain.runs import Network
from septet.domain.teams import ALIASES, ROLES, Edge, MemberSettings, RoleSpec, TeamSettings, TeamSpec
from septet.errors import BadConfig
from septet.settings.group_chats import is_group_chat, parse_group_chat
from septet.team.graph import GUARDS, edges_of, is_graph, speakers_of
from septet.ways.table import TEAMS, all_teams, find_way, known_way, way_names, way_of
from septet.ways.way import Way

Keepsake = Literal["plan", "versions", "reviews", "history", "cells"]


class MemberForm(MemberSettings, kw_only=True, forbid_unknown_fields=True):
    """A member in a team file: the name is optional, and a single model needs no list."""

    role: str
    name: str = ""
    model: str | tuple[str, ...] = ()
    next: str | Edge | tuple[str | Edge, ...] = ()
    max_tokens: Annotated[int, Meta(gt=0)] | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None


class TeamForm(TeamSettings, forbid_unknown_fields=True):
    """A team file. Booleans are accepted because YAML reads `off` and `on` as such."""

    members: tuple[MemberForm, ...]
    name: str = ""
    way: str = ""
    """The way of working; `floor` is the older name of this key."""
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
    name = form.way or form.floor
    way = known_way(name) or find_way(check_word(name, way_names(), "way", source))
    members = check_members(
        [member_of(member_form, way, source) for member_form in form.members], way, source
    )
    return TeamSpec(
        name=form.name or path.stem,
        members=members,
        network=network_of(form.network, source),
        packages=policy_of(form.packages, source),
        keepsakes=form.keepsakes,
        file=str(path.absolute()),
        **settings_of(replace(form, floor=name), TeamSettings),
    )


def settings_of(form: TeamSettings | MemberSettings, shared: type[Value]) -> dict[str, Any]:
    """The values of all fields that the file and the log share."""
    return {name: getattr(form, name) for name in shared.__struct_fields__}


def network_of(network: bool | Network, source: str) -> Network:
    """The network setting; YAML reads `off` and `on` as booleans."""
    if isinstance(network, bool):
        return "on" if network else "off"
    return network if isinstance(network, str) else check_hosts(network, source) or "off"


def policy_of(packages: bool | Policy, source: str) -> Policy:
    """The package policy; YAML reads `off` as a boolean, and `on` would be ambiguous."""
    if packages is True:
        raise BadConfig(f"{source}: packages cannot be 'on'", "write off, ask or auto")
    return "off" if packages is False else packages


def check_hosts(hosts: tuple[str, ...], source: str) -> tuple[str, ...]:
    if errors := [error for host in hosts if (error := host_error(host))]:
        raise BadConfig(f"{source}: {errors[0]}", "write api.example.org, or name:port for another port")
    return tuple(host.lower() for host in hosts)


def member_of(form: MemberForm, way: Way, source: str) -> RoleSpec:
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
        next=tuple(Edge(to=edge) if isinstance(edge, str) else edge for edge in followers),
        **settings_of(form, MemberSettings),
    )


def check_members(members: list[RoleSpec], way: Way, source: str) -> tuple[RoleSpec, ...]:
    names = [member.name for member in members]
    if not names:
        raise BadConfig(f"{source}: the team has no members", "add at least one")
    if not all(name.strip() for name in names):
        raise BadConfig(f"{source}: a member has no name", "give it one")
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise BadConfig(f"{source}: two members are called '{duplicate}'", "give one another name")
    check_graph(members, way, source)
    return tuple(members)


def check_graph(members: list[RoleSpec], way: Way, source: str) -> None:
    """Check `next:`: it must name members and known guards, and every member must be reachable."""
    edges = [edge for member in members for edge in member.next]
    if edges and not way.has_graph:
        raise BadConfig(
            f"{source}: the way {way.name} has an order of its own", "next: is for way: group_chat"
        )
    names = [member.name for member in members if not member.stands_for_person]
    roles = {member.role for member in members}
    for edge in edges:
        check_word(edge.to, names, "member", f"{source}: next")
        check_word(edge.when, list(GUARDS), "guard", f"{source}: next: {edge.to}: when")
        if edge.when != "always" and not {"coder", "runner"} <= roles:
            cause = f"{source}: '{edge.when}' is about code that is run"
            raise BadConfig(cause, "add a coder and a runner, or leave out when:")
    if way.has_graph and (unreached := unreachable_member(members)):
        raise BadConfig(
            f"{source}: nobody hands over to '{unreached}'",
            "name it in the next: of a member, or remove it",
        )


def unreachable_member(members: list[RoleSpec]) -> str:
    """The first member that the graph never reaches; empty if there is none."""
    team = TeamSpec(name="", members=tuple(members))
    names = [member.name for member in speakers_of(team)]
    if not names or not is_graph(team):
        return ""
    edges, manager = edges_of(team), team.member("manager")
    reached, queue = set[str](), [names[0]]
    while queue:
        name = queue.pop()
        if name not in reached:
            reached.add(name)
            queue += [edge.to for edge in edges[name]]
            queue += [manager.name] if manager and len(edges[name]) > 1 else []
    return next((name for name in names if name not in reached), "")


def check_team(team: TeamSpec) -> TeamSpec:
    """The team, after checking that its way can run it. Ways with fixed roles need each of them once, and its
    members are then named by role."""
    way = way_of(team)
    needed = way.needs
    if missing := [role for role in needed if team.member(role) is None]:
        cause = f"the team {team.name} has no {missing[0]}, and the way {team.floor} needs one"
        raise BadConfig(cause, "add a member with that role")
    roles = [member.role for member in team.members]
    allowed = roles if way.may_have is None else [*needed, *way.may_have]
    if unused := next((role for role in roles if role not in allowed), None):
        remedy = "remove it, or write a graph: way: group_chat with next: (docs/teams.md)"
        raise BadConfig(f"{team.name}: the way {team.floor} gives no turn to a {unused}", remedy)
    if team.consult and not way.has_reviews:
        raise BadConfig(
            f"{team.name}: the way {team.floor} has no reviews to ask you before", "remove consult: true"
        )
    if needed and (duplicate := next((role for role in roles if roles.count(role) > 1), None)):
        raise BadConfig(f"the way {team.floor} can have only one {duplicate}", "remove the other one")
    return replace(team, members=tuple(map(with_title, team.members))) if needed else team


def with_title(member: RoleSpec) -> RoleSpec:
    """The member named by its role; its own name becomes the title that people see."""
    return member if member.name == member.role else replace(member, name=member.role, title=member.name)


def check_word(word: str, words: list[str], what: str, source: str) -> str:
    if word in words:
        return word
    near = get_close_matches(word, words, n=1)
    remedy = f"did you mean '{near[0]}'?" if near else f"use one of {', '.join(words)}"
    raise BadConfig(f"{source}: unknown {what} '{word}'", remedy)
