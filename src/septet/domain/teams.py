"""A team is data: roles, models, tools, a floor policy and stop rules."""

from collections.abc import Mapping
from typing import Literal

from septet.common.values import Value
from septet.domain.messages import Price
from septet.domain.packages import Policy
from septet.domain.runs import Limits, Network

TALKERS = ("writer", "editor")
"""Roles that only talk: the members of a group chat."""
ROLES = ("planner", "coder", "runner", "reviewer", "manager", "proxy", "exemplar", *TALKERS)

ALIASES = {"admin": "manager", "user_proxy": "proxy", "examplar": "exemplar"}
"""Names that other projects use for roles."""

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
    """What one member may use; None means no limit. `cost` in US dollars, `seconds` of models and programs."""

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


class Edge(Value, forbid_unknown_fields=True):
    """An edge of a group chat's graph: who may speak next, and under which condition."""

    to: str
    when: str = "always"


class MemberSettings(Value, kw_only=True, forbid_unknown_fields=True):
    """Settings of a member, the same in team files and in the log.

    - `stronger`: the model that takes over when the same failure repeats.
    - `candidates`: how many versions a coder may generate for the checks to choose from.
    - `form`: the form of prompts and replies: the usual text, the short forms that small models follow better, or
      tools; empty means what suits the model best.
    - `budget`: the member's own, beside the chat's.
    - `max_tokens`: the limit of one answer; `timeout`: the seconds after which the request is repeated.
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
    """A member: its `role`, its `name` and its model(s).

    `title` is the name that people see; `next` is who may speak after it in a group chat.
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
    """Bounds of a chat; None means no limit. `cost` in US dollars, `seconds` of active time.

    `price` is for models that are not in the price list: without it their cost cannot be limited.
    """

    rounds: int | None = 8
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    price: Price | None = None


class TeamSettings(Value, kw_only=True, forbid_unknown_fields=True):
    """Settings of a team, the same in team files and in the log.

    - `floor`: the name of the way of working (key `floor` for compatibility).
    - `stepwise` asks the person before every turn, `consult` before every review.
    - `refusals`: the chat ends after so many unusable replies in a row.
    - `help_after`: the exemplar is asked after so many equal failures.
    - `stuck_after`: the chat ends after so many versions in a row without a change.
    - `please_after`: the chat ends after so many reviews in a row that demand more although all checks passed.
    - `run`: how programs are run if the plan does not say it; `warm`: modules that are imported beforehand.
    - `tests`: the command that tests the program, instead of pytest; its exit code decides.
    - `setup`: the command that makes the project's environment, if it has none; the packages policy applies.
    - `languages`: the commands that run files (`.kt: kotlinc -script`), in addition to the known ones.
    - `strict`: no requirement counts as met by the coder's own tests alone.
    - `unmask`: files (patterns of paths) that look like secrets and that programs may read; no model sees them.
    - `not_secret`: files that only look like secrets, such as tests with made-up keys.
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
    setup: str = ""
    languages: Mapping[str, str] = {}
    unmask: tuple[str, ...] = ()
    not_secret: tuple[str, ...] = ()


class TeamSpec(TeamSettings, forbid_unknown_fields=True):
    """A team with its settings; stored in the log, so that a resumed chat behaves the same.

    `network` is what programs can reach; `packages` is whether missing imports may be installed; `keepsakes` are the
    artefact files to write. `config` is a group chat's config.yaml, whose client section configures the models.
    """

    name: str
    members: tuple[RoleSpec, ...]
    network: Network = "off"
    packages: Policy = "off"
    keepsakes: tuple[str, ...] = ()
    config: str = ""
    file: str = ""
    """The team file that it was read from, as an absolute path."""

    @property
    def person(self) -> str:
        """The name of the member that speaks for the person; the role's name if the team does not list one."""
        return next((member.name for member in self.members if member.stands_for_person), "proxy")

    def member_named(self, name: str) -> RoleSpec | None:
        return next((member for member in self.members if member.name == name), None)

    def member(self, role: str) -> RoleSpec | None:
        """Return the first member with that role."""
        return next((member for member in self.members if member.role == role), None)
