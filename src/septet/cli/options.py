"""The options that all commands that run a chat share, as one value."""

import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec

import click
from click.core import ParameterSource

from septet.errors import BadUsage

if TYPE_CHECKING:
    from septet.domain.messages import Price
    from septet.domain.packages import Policy
    from septet.domain.runs import Network
    from septet.domain.state import State
    from septet.domain.teams import Budget, RunAs, TeamSpec
    from septet.ports import Agent

P = ParamSpec("P")
Approval = Literal["ask", "edits", "all", "never"]
QUICKSTART = "SEPTET_QUICKSTART"
"""The environment variable that `./run` sets to its checkout."""
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class ModelOptions:
    """Which model the members use, and what is logged of its prompts and answers."""

    model: str = ""
    fetch: bool = False
    record: Path | None = None
    debug: bool = False


@dataclass(frozen=True)
class Consent:
    """What the person approves beforehand, and when they want to be asked."""

    yes: bool = False
    step: bool = False
    approve: Approval | None = None

    def check(self) -> None:
        if self.yes and self.approve not in (None, "all"):
            raise click.UsageError(
                f"`--yes` and `--approve {self.approve}` cannot be combined: leave out one"
            )
        if self.step and (self.yes or self.approve in ("all", "edits")):
            other = "--yes" if self.yes else f"--approve {self.approve}"
            raise click.UsageError(f"`{other}` and `--step` cannot be combined: leave out one")

    @property
    def to_all(self) -> bool:
        return self.yes or self.approve == "all"


@dataclass(frozen=True)
class Bounds:
    """How much a chat may use."""

    rounds: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_time: float | None = None
    price: "Price | None" = None


@dataclass(frozen=True)
class OutputOptions:
    """What is printed, and how."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    plain: bool = False
    bell: bool = False
    out: Path | None = None


@dataclass(frozen=True)
class Programs:
    """How programs are run, and what they may use."""

    run_as: "RunAs | None" = None
    strict: bool = False
    network: "Network | None" = None
    packages: "Policy | None" = None
    unsafe_local: bool = False


@dataclass(frozen=True)
class DataFiles:
    data: tuple[Path, ...] = ()
    dictionary: Path | None = None


@dataclass(frozen=True)
class Options:
    """All options in groups, so that a function takes only the group that it needs."""

    model: ModelOptions = field(default_factory=ModelOptions)
    consent: Consent = field(default_factory=Consent)
    bounds: Bounds = field(default_factory=Bounds)
    output: OutputOptions = field(default_factory=OutputOptions)
    programs: Programs = field(default_factory=Programs)
    files: DataFiles = field(default_factory=DataFiles)


PARTS = {
    "model": ModelOptions,
    "consent": Consent,
    "bounds": Bounds,
    "output": OutputOptions,
    "programs": Programs,
    "files": DataFiles,
}


class Duration(click.ParamType[float]):
    """`90`, `90s`, `20m`, `1.5h`."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if match is None or not 0 < float(match[1]) * UNITS[match[2]] < math.inf:
            self.fail(f"'{value}' is not a time, write 90s, 20m or 1.5h", param, ctx)
        return float(match[1]) * UNITS[match[2]]


class Amount(click.ParamType[float]):
    """A real number greater than 0."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            amount = float(str(value))
        except ValueError:
            amount = math.nan
        if not 0 < amount < math.inf:
            self.fail(f"'{str(value)[:40]}' is not an amount, write a number greater than 0", param, ctx)
        return amount


class PriceOfTokens(click.ParamType["Price"]):
    """`0.5/1.5`: US dollars per million tokens of prompts and of answers."""

    name = "price"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "Price":
        from septet.domain.messages import Price

        match = re.fullmatch(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", str(value))
        if match is None:
            self.fail(f"'{str(value)[:40]}' is not a price, write IN/OUT as in 0.5/1.5", param, ctx)
        return Price(prompt=float(match[1]), completion=float(match[2]))


class Folder(click.ParamType[Path]):
    """A folder as an absolute path; the caller checks whether it can be used."""

    name = "folder"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if not str(value).strip():
            self.fail("'' is not a folder", param, ctx)
        try:
            return Path(str(value)).expanduser().absolute()
        except RuntimeError:
            self.fail(f"'{str(value)[:80]}' has no home folder here", param, ctx)


class NetworkAccess(click.ParamType["Network"]):
    """`off`, `on`, or hosts separated by commas."""

    name = "hosts"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "Network":
        from septet.common.hosts import host_error

        hosts = [host.strip().lower() for host in str(value).split(",") if host.strip()]
        if hosts == ["on"]:
            return "on"
        if hosts in (["off"], []):
            return "off"
        mixed = f"'{value}' mixes on or off with hosts" if {"on", "off"} & set(hosts) else ""
        problems = filter(None, [mixed, *(host_error(host) for host in hosts)])
        if problem := next(problems, ""):
            self.fail(f"{problem}; write off, on, or api.example.org,localhost:8000", param, ctx)
        return tuple(hosts)


action_option = click.option(
    "--action",
    default="",
    metavar="DIGEST",
    help="Answer only if the chat still asks exactly this; the digest is in the line that asked.",
)


bell_option = click.option(
    "--bell",
    is_flag=True,
    envvar="SEPTET_BELL",
    help="Ring the terminal's bell at each question and at the end.",
)


def model_names(_context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    """Return the beginnings of model names, and the embedded models; no server is asked."""
    from septet.wiring.models import model_name_starts

    return [name for name in model_name_starts() if name.startswith(prefix)]


OPTIONS = [
    click.option(
        "-m",
        "--model",
        default="",
        envvar="SEPTET_MODEL",
        shell_complete=model_names,
        help="The model of every member: see septet models.",
    ),
    click.option(
        "--fetch", is_flag=True, help="Download the embedded model (1.1 GB, once) if there is no other."
    ),
    click.option("--yes", is_flag=True, help="Approve the plan without asking."),
    click.option(
        "--approve",
        type=click.Choice(["ask", "edits", "all", "never"]),
        help="What is approved beforehand: nothing (ask), plans and files (edits), everything (all, as --yes); "
        "never does not ask, and stops if an approval is needed.",
    ),
    click.option("--step", is_flag=True, help="Stop before each turn and ask."),
    click.option("--rounds", type=click.IntRange(1), help="The maximum number of versions (8)."),
    click.option("--max-cost", type=Amount(), metavar="USD", help="The maximum cost in dollars."),
    click.option(
        "--price",
        type=PriceOfTokens(),
        metavar="IN/OUT",
        help="The price of a model that is not in the price list: dollars per million tokens in and out.",
    ),
    click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="The maximum number of tokens."),
    click.option("--max-time", type=Duration(), help="The maximum working time: 90s, 20m, 1.5h."),
    click.option("--json", is_flag=True, help="JSON lines on stdout: every event, then the result."),
    click.option("-q", "--quiet", is_flag=True, help="Print the result and errors only."),
    click.option("-v", "--verbose", is_flag=True, help="Also print the members' messages."),
    click.option("--debug", is_flag=True, help="Write the prompts to a log file, without keys."),
    click.option("--plain", is_flag=True, help="No colours, no animation."),
    bell_option,
    click.option(
        "--data",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A data file to ask about: CSV, JSON lines, Parquet, text, gz. It is never written.",
    ),
    click.option(
        "--dictionary",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A description of the data's columns.",
    ),
    click.option(
        "--record",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Record the answers for replay:FILE.",
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write the result to FILE, atomically.",
    ),
    click.option(
        "--run-as",
        type=click.Choice(["auto", "script", "screen", "server", "cells"]),
        help="How programs are run; cells: all code in one kernel (team pair).",
    ),
    click.option(
        "--strict", is_flag=True, help="Accept no requirement that only the coder's own tests show."
    ),
    click.option(
        "--network",
        type=NetworkAccess(),
        help="Hosts that programs can reach: off (default), on, or HOST,HOST:PORT.",
    ),
    click.option(
        "--packages",
        type=click.Choice(["off", "ask", "auto"]),
        help="Whether missing packages are installed, for this work only (on a terminal: ask).",
    ),
    click.option("--unsafe-local", is_flag=True, help="Run code WITHOUT a sandbox, with your rights."),
]


MAIN_OPTIONS = (
    "workspace",
    "team",
    "model",
    "yes",
    "step",
    "rounds",
    "max_cost",
    "max_time",
    "network",
    "json",
)
"""The options that `--help` shows first."""


def split_options(
    parameters: Sequence[click.Parameter],
) -> tuple[list[click.Parameter], list[click.Parameter]]:
    """Return the options that matter most, in their order, and the others."""
    options = [parameter for parameter in parameters if isinstance(parameter, click.Option)]
    first = [option for name in MAIN_OPTIONS for option in options if option.name == name]
    return list(first), [option for option in options if option not in first]


class ChatCommand(click.Command):
    """A command that runs a chat: its help shows the options that matter first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, options in zip(
            ("Options", "More options"), split_options(self.get_params(ctx)), strict=True
        ):
            with formatter.section(title):
                formatter.write_dl([record for option in options if (record := option.get_help_record(ctx))])


def is_given(option: str) -> bool:
    """Whether the person typed the option; environment variables do not count."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(option) is ParameterSource.COMMANDLINE


def refuse_options(why: str, *options: str) -> None:
    """Refuse shared options that this command would ignore."""
    for option in options:
        if is_given(option):
            raise click.UsageError(f"{why}: leave out --{option}", click.get_current_context())


def option_group(part: type, given: dict[str, object]) -> object:
    """Build one group of options from click's values, which click has validated."""
    return part(**{option.name: given.pop(option.name) for option in fields(part)})


def run_options(command: Callable[P, int]) -> Callable[..., int]:
    """Collect the shared options into the command's `options` argument."""

    @functools.wraps(command)
    def with_options(*args: P.args, **kwargs: P.kwargs) -> int:
        options = Options(**{name: option_group(part, kwargs) for name, part in PARTS.items()})  # pyright: ignore[reportArgumentType]  # each is of its type
        options.consent.check()
        kwargs["options"] = options
        return command(*args, **kwargs)

    for option in reversed(OPTIONS):
        with_options = option(with_options)
    return with_options


def with_options(team: "TeamSpec", options: Options) -> "TeamSpec":
    """Return the team with the settings of the command line."""
    from msgspec.structs import replace

    consent, programs = options.consent, options.programs
    approve = "auto" if consent.to_all else "ask" if consent.step or consent.approve else team.approve
    return replace(
        team,
        budget=budget_with(team.budget, options.bounds),
        approve=approve,
        stepwise=consent.step or team.stepwise,
        run=programs.run_as or team.run,
        strict=programs.strict or team.strict,
        network=programs.network or team.network,
        packages=programs.packages or team.packages,
    )


def budget_with(budget: "Budget", bounds: Bounds) -> "Budget":
    from msgspec.structs import replace

    given = {
        "rounds": bounds.rounds,
        "cost": bounds.max_cost,
        "tokens": bounds.max_tokens,
        "seconds": bounds.max_time,
        "price": bounds.price,
    }
    return replace(budget, **{name: value for name, value in given.items() if value is not None})


def more_budget(state: "State", bounds: Bounds) -> "Budget":
    """Return a raised budget: what was used, plus the team's budget or that of the command line."""
    from septet.ways.table import as_much_again

    return as_much_again(state, budget_with(state.team.budget, bounds))


def with_questions(team: "TeamSpec", consent: Consent, here: bool) -> "TeamSpec":
    """Set whether a new chat asks before reviews and for packages; `here` means that a person is at the terminal.

    A team that approves plans by itself asks before reviews only if it is configured to.
    """
    from msgspec.structs import replace

    from septet.ways.table import TEAMS

    asks = here and not consent.to_all and consent.approve != "never"
    policy = "ask" if asks and team in TEAMS.values() else team.packages
    if consent.approve == "never":
        policy = "off"
    consults = asks and consent.approve != "edits" and team.approve == "ask"
    return replace(team, consult=team.consult or consults, packages=policy)


def check_questions(team: "TeamSpec", consent: Consent) -> None:
    """Raise BadUsage if the team asks at each turn or review, but the person has approved beforehand."""
    answered = "--yes" if consent.to_all else "--approve edits" if consent.approve == "edits" else ""
    asks = "before each turn (stepwise: true)" if team.stepwise else "before each review (consult: true)"
    if answered and (team.stepwise or team.consult):
        raise BadUsage(
            f"the team {team.name} asks you {asks}", f"leave out {answered}, or that line of the team"
        )


def person_agent(consent: Consent, person: "Agent | None", command: str) -> "Agent | None":
    """Return the agent that answers for the person: none, the person, or one that always agrees.

    `command` is what an absent person can type later.
    """
    from septet.agents.person import absent_person, agreeing_to_work, always_agree

    if consent.to_all:
        return always_agree
    if consent.approve == "edits":
        return agreeing_to_work(person or absent_person(command))
    return None if consent.approve == "never" else person
