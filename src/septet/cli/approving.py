"""What a person has agreed to beforehand (`--approve`), in the terms of the team and of its proxy."""

from msgspec.structs import replace

from septet.agents.proxy import agreeing, agreeing_to_work, away
from septet.cli.options import Options
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage
from septet.ports import Agent
from septet.team.teams import TEAMS


def consulted(team: TeamSpec, options: Options, here: bool) -> TeamSpec:
    """Whether a new chat asks its person before reviews and for packages; `here` is a person at the terminal.

    One whose team takes plans as they come asks before reviews only where the team says so.
    """
    asks = here and not options.yes and options.approve != "never"
    policy = "ask" if asks and team in TEAMS.values() else team.packages
    if options.approve == "never":
        policy = "off"
    looks = asks and options.approve != "edits" and team.approve == "ask"
    return replace(team, consult=team.consult or looks, packages=policy)


def check_questions(team: TeamSpec, options: Options) -> None:
    """What the team wants to ask and what was answered beforehand must not say two things."""
    answered = "--yes" if options.yes else "--approve edits" if options.approve == "edits" else ""
    asks = "before each turn (stepwise: true)" if team.stepwise else "before each review (consult: true)"
    if answered and (team.stepwise or team.consult):
        raise BadUsage(
            f"the team {team.name} asks you {asks}", f"leave out {answered}, or that line of the team"
        )


def stand_in(options: Options, person: Agent | None, command: str) -> Agent | None:
    """Who answers for the person now: nobody, the person, or what was said beforehand.

    `command` is what a person who is away can type later.
    """
    if options.yes:
        return agreeing
    if options.approve == "edits":
        return agreeing_to_work(person or away(command))
    return None if options.approve == "never" else person
