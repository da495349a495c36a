"""A team is data: roles, models, tools, a floor policy and stop rules."""

from collections.abc import Mapping
from typing import Literal

from septet.common.values import Value
from septet.domain.messages import Price
from septet.domain.packages import Policy
from septet.domain.runs import Limits, Network

TALKERS = ("writer", "editor")
"""Who only talk: the members of a group chat."""
ROLES = ("planner", "coder", "runner", "reviewer", "manager", "proxy", "exemplar", *TALKERS)

ALIASES = {"admin": "manager", "user_proxy": "proxy", "examplar": "exemplar"}
"""Roles by the names that other projects have for them."""

RunAs = Literal["auto", "script", "screen", "server", "cells"]
EndReason = Literal[
    "done",
    "accepted",
    "claimed",
    "answered",
    "rounds",
    "challenged",
    "bound",
    "no_progress",
    "error",
    "stopped",
]
"""`done` is proven by checks, `claimed` is not; `answered` and `rounds` are ends of work that has no checks; at
`challenged` the coder says that a check is wrong, and a person has to decide."""


class Allowance(Value, forbid_unknown_fields=True):
    """What one member may use; None is unbounded. `cost` in US dollars, `seconds` of models and programs."""

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


class Edge(Value, forbid_unknown_fields=True):
    """Who may speak next, and when."""

    to: str
    when: str = "always"


class MemberSettings(Value, kw_only=True, forbid_unknown_fields=True):
    """What a member is set to, in team files and in the log alike.

    `stronger` is the model that takes over when the same failure comes again and again;
    `candidates` is how many versions a coder may draw for the checks to choose from; `form` is how it
    is briefed and replies: in the usual text, in the short forms that small models keep to better, or with tools;
    what its model does best where nothing is said;
    `budget` is the member's own, beside the chat's;
    `max_tokens` bounds one answer, and `timeout` the seconds that it may take before it is asked for again.
    """

    instructions: str = ""
    temperature: float | None = None
    candidates: int = 1
    stronger: str = ""
    form: Literal["", "text", "small", "tools"] = ""
    budget: Allowance = Allowance()
    max_tokens: int | None = None
    timeout: float | None = None


class RoleSpec(MemberSettings, forbid_unknown_fields=True):
    """A member: what it does (`role`), what it is called (`name`), what it thinks with.

    `title` is what people see where the name is the role's; `next` is who may follow it in a group chat.
    """

    name: str
    role: str
    model: tuple[str, ...] = ()
    title: str = ""
    next: tuple[Edge, ...] = ()

    @property
    def stands_for_person(self) -> bool:
        return self.role == "proxy"

    @property
    def writes_code(self) -> bool:
        return self.role == "coder"

    @property
    def runs_programs(self) -> bool:
        return self.role == "runner"


class Budget(Value, forbid_unknown_fields=True):
    """Bounds of a chat; None is unbounded. `cost` in US dollars, `seconds` of active time.

    `price` is that of models whose price is not known: without it no cost can be bounded.
    """

    rounds: int | None = 8
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    price: Price | None = None


class TeamSettings(Value, kw_only=True, forbid_unknown_fields=True):
    """What a team is set to, in team files and in the log alike. `floor` is its way of working.

    `help_after` is how often the same failure comes before the exemplar is asked.
    `consult` asks the person before every review; `refusals`, `stuck_after` and `please_after` bound how often
    in a row a reply may be unusable, the same code may come, and a reviewer may want more of what is green.
    `run` is how programs are run where the plan does not say it; `warm` is which modules wait already imported.
    `tests` is the command that tests the program, instead of pytest: its exit code decides. `languages` says
    what runs a file (`.kt: kotlinc -script`), beside what is known anyway. A `strict` team takes no requirement as
    met by tests of the coder's own alone.
    """

    floor: str = "plan_then_iterate"
    budget: Budget = Budget()
    limits: Limits = Limits()
    approve: Literal["ask", "auto"] = "ask"
    stepwise: bool = False
    consult: bool = False
    strict: bool = False
    refusals: int = 3
    help_after: int = 2
    stuck_after: int = 3
    please_after: int = 3
    run: RunAs = "auto"
    warm: tuple[str, ...] = ()
    tests: str = ""
    languages: Mapping[str, str] = {}


class TeamSpec(TeamSettings, forbid_unknown_fields=True):
    """Everything that makes two chats of the same goal go the same way; kept in the log.

    `network` is what programs can reach; `packages` is whether what they import may be installed. `config` is the
    group chat's file whose client section opens the models, where there is one.
    """

    name: str
    members: tuple[RoleSpec, ...]
    network: Network = "off"
    packages: Policy = "off"
    keepsakes: tuple[str, ...] = ()
    config: str = ""

    @property
    def person(self) -> str:
        """The name of the member that stands for the person; one that the team does not list has the role's name."""
        return next((member.name for member in self.members if member.stands_for_person), "proxy")

    def member_named(self, name: str) -> RoleSpec | None:
        return next((member for member in self.members if member.name == name), None)

    def member(self, role: str) -> RoleSpec | None:
        """The first member with that role."""
        return next((member for member in self.members if member.role == role), None)
