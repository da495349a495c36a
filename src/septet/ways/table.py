"""The table of ways of working. A new one is a folder, and a line here, an entry point or an argument."""

from collections.abc import Iterable, Mapping
from functools import cache

from septet.common.entry_points import plugins
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.errors import BadConfig
from septet.ports import Agent
from septet.team.budgets import within_budget
from septet.team.floor import Floor, stepwise, unless_refused, unless_stopped, with_package_approval
from septet.ways.assistant.way import WAY as ASSISTANT
from septet.ways.autocoder.way import WAY as AUTOCODER
from septet.ways.group_chat.way import WAY as GROUP_CHAT
from septet.ways.iterate.way import WAY as ITERATE
from septet.ways.pair.way import WAY as PAIR
from septet.ways.plan.way import WAY as PLAN
from septet.ways.round_robin.way import WAY as ROUND_ROBIN
from septet.ways.way import MemberContext, Way

GROUP = "septet.ways"
BUILT_IN = (PLAN, ITERATE, PAIR, AUTOCODER, GROUP_CHAT, ASSISTANT, ROUND_ROBIN)
WAYS: dict[str, Way] = {way.name: way for way in BUILT_IN}
"""The ways that come with Septet, and those that a program has added."""
ALIASES = {"plan_then_iterate": "iterate", "reason_and_act": "autocoder", "direct": "assistant"}
"""Other names of ways in team files and logs."""
TEAMS: Mapping[str, TeamSpec] = {team.name: team for way in BUILT_IN for team in way.teams}


def add_ways(ways: Iterable[Way]) -> None:
    """Add ways of working for this program's teams. Refuses a name that exists already."""
    for way in ways:
        if way.name in ALIASES or WAYS.setdefault(way.name, way) is not way:
            raise BadConfig(f"there is a way of working '{way.name}' already", "give yours another name")


@cache
def installed_ways() -> Mapping[str, Way]:
    """The ways of installed packages; they cannot replace those of Septet."""
    found: dict[str, Way] = {}
    for loaded in plugins(GROUP):
        if not isinstance(loaded, Way):
            raise BadConfig(f"{loaded!r} of an installed package is no way of working", "it must be a Way")
        found[loaded.name] = loaded
    return found


def way_names() -> list[str]:
    """All names that a team may use."""
    return [*WAYS, *ALIASES, *(name for name in installed_ways() if name not in WAYS)]


def all_teams() -> dict[str, TeamSpec]:
    """The teams of all known ways, by name."""
    ways = [*installed_ways().values(), *WAYS.values()]
    return {**TEAMS, **{team.name: team for way in ways for team in way.teams}}


def known_way(name: str) -> Way | None:
    """The way of that name, if it is Septet's or a program has added it: installed packages are not searched."""
    return WAYS.get(ALIASES.get(name, name))


def find_way(name: str) -> Way:
    """The way of that name; a chat with an unknown way can be listed and shown, but not continued."""
    return known_way(name) or installed_ways().get(name) or unknown(name)


def way_of(team: TeamSpec) -> Way:
    return find_way(team.floor)


def unknown(name: str) -> Way:
    def fail() -> BadConfig:
        return BadConfig(f"there is no way of working '{name}'", f"use one of {', '.join(way_names())}")

    def floor(team: TeamSpec, budget: Budget) -> Floor:
        raise fail()

    def member(spec: RoleSpec, context: MemberContext) -> Agent:
        raise fail()

    return Way(name=name, floor=floor, member=member, thinks=())


def floor_for(team: TeamSpec, budget: Budget) -> Floor:
    """The way's policy with all its limits."""
    way = way_of(team)
    if team.stepwise and not way.asks_person:
        cause = f"the team '{team.name}' cannot be stepped: its proxy speaks for itself"
        raise BadConfig(cause, "leave out --step")
    floor = within_budget(budget, unless_refused(team.refusals, way.floor(team, budget)))
    asking = with_package_approval(floor) if way.asks_person else floor
    return unless_stopped(stepwise(asking) if team.stepwise else asking)


def thinkers(team: TeamSpec) -> list[RoleSpec]:
    """The members that use a model."""
    return way_of(team).thinkers(team)


def rounds_used(state: State) -> int:
    return way_of(state.team).rounds_used(state)


def as_much_again(state: State, first: Budget) -> Budget:
    """The budget added to what the chat has used, for a chat that goes on after its end."""
    spent = state.spending.total
    return Budget(
        rounds=None if first.rounds is None else first.rounds + rounds_used(state),
        tokens=None if first.tokens is None else first.tokens + spent.usage.total,
        cost=None if first.cost is None else first.cost + spent.cost,
        seconds=None if first.seconds is None else first.seconds + state.spending.seconds,
        price=first.price or state.budget.price,
    )
