"""Floor policies. They decide who speaks next and when a chat ends, from the state alone."""

from collections.abc import Callable, Sequence

from septet.domain.state import State
from septet.domain.teams import Budget, TeamSpec
from septet.errors import BadConfig
from septet.team.budgets import within_budget
from septet.team.evidence import done, examined
from septet.team.floor import (
    End,
    Floor,
    Move,
    Speak,
    agreed,
    at_most,
    helped,
    rounds_of,
    stepwise,
    unless_never_pleased,
    unless_refused,
    unless_stopped,
    unless_stuck,
    until_accepted,
    until_done,
)
from septet.team.graph import PAIR, graph
from septet.ways.assistant.policy import assisting
from septet.ways.autocoder.policy import autocoding
from septet.ways.group_chat.policy import talking


def plan_then_iterate(state: State) -> Move:
    """Plan until the person approves; then code, run and review, one version after the other."""
    if state.plan is None:
        return Speak(speaker="planner")
    if not state.approved:
        return Speak(speaker="planner" if state.remarks else "proxy")
    if state.version is None:
        return Speak(speaker="coder")
    if not examined(state):
        return Speak(speaker="runner")
    if state.review is None and state.team.consult and state.consulted != state.version.tree:
        return Speak(speaker="proxy")
    return Speak(speaker="reviewer" if state.review is None else "coder")


def round_robin(speakers: Sequence[str]) -> Floor:
    """Everybody in turn, for ever."""

    def floor(state: State) -> Move:
        return Speak(speaker=speakers[rounds_of(state) % len(speakers)])

    return floor


def planning(team: TeamSpec, budget: Budget) -> Floor:
    """The talk about the plan only, until the person approves it."""

    def floor(state: State) -> Move:
        return (
            End(reason="accepted", detail="the plan is approved")
            if state.approved
            else plan_then_iterate(state)
        )

    return at_most(budget.rounds, floor, of="planner")


def iterating(team: TeamSpec, budget: Budget) -> Floor:
    rounds = at_most(budget.rounds, helped(team.help_after, plan_then_iterate), of="coder")
    pleased = unless_never_pleased(team.please_after, unless_stuck(team.stuck_after, rounds))
    return until_done(done, until_accepted(pleased))


def taking_turns(team: TeamSpec, budget: Budget) -> Floor:
    return at_most(budget.rounds, round_robin([member.name for member in team.members]))


def pairing(team: TeamSpec, budget: Budget) -> Floor:
    """Coder and runner in a group chat that a manager leads."""
    return at_most(
        budget.rounds, unless_stuck(team.stuck_after, helped(team.help_after, graph(PAIR, "manager")))
    )


FLOORS: dict[str, Callable[[TeamSpec, Budget], Floor]] = {
    "pair": pairing,
    "plan": planning,
    "reason_and_act": autocoding,
    "direct": assisting,
    "plan_then_iterate": iterating,
    "round_robin": taking_turns,
    "group_chat": talking,
}


def floor_for(team: TeamSpec, budget: Budget) -> Floor:
    """The team's policy with everything that bounds it."""
    if team.floor not in FLOORS:
        raise BadConfig(
            f"the team '{team.name}' names an unknown floor '{team.floor}'", f"use one of {', '.join(FLOORS)}"
        )
    floor = within_budget(budget, unless_refused(team.refusals, FLOORS[team.floor](team, budget)))
    asking = floor if team.floor == "direct" else agreed(floor)
    return unless_stopped(stepwise(asking) if team.stepwise else asking)
