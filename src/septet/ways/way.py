"""A way of working as one value, and what its members are given to work with."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from septet.domain.plans import plan_text
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.ports import Agent, Bus, Examples, Model
from septet.team.floor import Floor, rounds_of

if TYPE_CHECKING:
    from septet.agents.run_context import RunContext
    from septet.agents.runner import EarlyBaseline
    from septet.tools.registry import Toolbox

PERSON = "proxy"
"""The role of whoever stands for the person, unless a way lets a model speak for it."""


@dataclass(frozen=True)
class MemberContext:
    """What the wiring gives the members of a chat. What costs something to open is opened when it is asked for."""

    team: TeamSpec
    open_model: Callable[[Sequence[str]], Model]
    bus: Bus
    """Where watchers hear text while it is written."""
    open_run_context: "Callable[[], RunContext]"
    """The same at every call."""
    person: Agent
    """Who answers for the person."""
    examples: Callable[[], Examples]
    server_tools: "Callable[[], Awaitable[Toolbox]]"
    """The tools of the person's MCP servers."""
    scratch_context: "Callable[[], AbstractContextManager[RunContext]]"
    """A context with a temporary workspace that nobody watches."""
    early_baseline: "EarlyBaseline | None" = None
    """The tests on the untouched base that run beside the planning, if they do."""

    @property
    def run_context(self) -> "RunContext":
        """The workspace, the sandbox, the blobs, the bus and the packages."""
        return self.open_run_context()


def members_of(folder: str) -> Callable[[RoleSpec, MemberContext], Agent]:
    """The function `member` of the way's `members.py`, imported with the first turn: a list of chats needs none."""

    def member(spec: RoleSpec, context: MemberContext) -> Agent:
        return import_module(f"{folder}.members").member(spec, context)

    return member


def anybodys_turns(state: State) -> int:
    return rounds_of(state)


def plan_only(state: State) -> str:
    """The plan, where nothing has been built by it; else nothing: the report is the result."""
    planned = state.plan.current is not None and state.plan.approved and not state.work.versions
    return plan_text(state.plan.current).rstrip() if planned and state.plan.current else ""


def always(_state: State) -> bool:
    return True


@dataclass(frozen=True)
class Way:
    """Everything in which one way of working differs from another. Nobody else compares names of ways or roles."""

    name: str
    floor: Callable[[TeamSpec, Budget], Floor]
    """Who speaks when, within the way's own bounds."""
    member: Callable[[RoleSpec, MemberContext], Agent]
    """Who takes a member's turns."""
    thinks: tuple[str, ...]
    """Roles that need a model."""
    needs: tuple[str, ...] = ()
    """Roles that it cannot do without: once each, and called by their role."""
    may_have: tuple[str, ...] | None = None
    """Further roles that get a turn; None where everybody gets one."""
    rounds_used: Callable[[State], int] = anybodys_turns
    """How many of the budget's rounds are used up."""
    result_text: Callable[[State], str] = plan_only
    """What its result says in words; nothing where the report on the program is the result."""
    is_talk: bool = False
    """What is said is the result: it is shown as it is said, and no program is due at the end."""
    has_reviews: bool = False
    """Whether the person can be asked before a review."""
    has_graph: bool = False
    """Whether a team may say who follows whom (`next:`)."""
    delivers: Callable[[State], bool] = always
    """Whether finished work goes to the person's folder without being asked for by name."""
    told_environment: bool = False
    """Whether its members write programs, and are told what these run with."""
    takes_baseline: bool = False
    """Whether the tests of a base are always run before its first version is judged."""
    delivers_only_checked: bool = False
    """Whether of the files that runs create only those are delivered that a check names."""
    teams: tuple[TeamSpec, ...] = ()
    """The teams that come with it, by name."""

    @property
    def asks_person(self) -> bool:
        """Whether the proxy is the person; else it thinks for itself and asks nobody."""
        return PERSON not in self.thinks

    def is_person(self, member: RoleSpec) -> bool:
        return self.asks_person and member.role == PERSON

    def thinkers(self, team: TeamSpec) -> list[RoleSpec]:
        """The members that think with a model."""
        return [member for member in team.members if member.role in self.thinks]

    @property
    def roles(self) -> tuple[str, ...]:
        """Every role that the way names."""
        return tuple(dict.fromkeys((*self.needs, *self.thinks, *(self.may_have or ()))))
