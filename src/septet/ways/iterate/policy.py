"""Plan, then code, run and review: decides who speaks next and when the chat ends. Pure."""

from septet.domain.state import State
from septet.domain.teams import Budget, TeamSpec
from septet.team.challenges import unplanned_wishes, with_challenges
from septet.team.confirmations import calls_to_confirm
from septet.team.evidence import is_done, is_examined, shortcomings
from septet.team.floor import (
    Floor,
    Move,
    Speak,
    at_most,
    unless_never_pleased,
    unless_stuck,
    until_accepted,
    until_done,
    with_help,
)

RED_VERSIONS = 2
"""Versions with failing checks that go back to the coder before the reviewer sees one."""


def plan_then_iterate(state: State) -> Move:
    """The floor policy: plan until the person approves; then code, run and review each version."""
    if state.plan.current is None:
        return Speak(speaker="planner")
    if not state.plan.approved:
        return Speak(speaker="planner" if state.talk.remarks else state.team.person)
    if state.work.version is None:
        return Speak(speaker="coder")
    if not is_examined(state):
        return Speak(speaker="runner")
    if returns_to_coder(state):
        return Speak(speaker="coder")
    if unplanned_wishes(state) and not shortcomings(state):
        return Speak(speaker="planner")
    if (
        state.work.review is None
        and state.team.consult
        and state.floor.consulted_tree != state.work.version.tree
    ):
        return Speak(speaker=state.team.person)
    return Speak(speaker="reviewer" if state.work.review is None else "coder")


def returns_to_coder(state: State) -> bool:
    """Whether to skip the review: a coder with tools gets failing checks directly, but not twice in a row."""
    coder, version = state.team.member("coder"), state.work.version
    if coder is None or coder.form != "tools" or version is None or state.work.review is not None:
        return False
    reviewed = state.work.reviews[-1].version if state.work.reviews else 0
    return version.number - reviewed < RED_VERSIONS and bool(shortcomings(state))


def with_confirmation(floor: Floor) -> Floor:
    """Ask the planner what the goal says of inputs for which the program has code of their own."""

    def next_move(state: State) -> Move:
        return Speak(speaker="planner") if calls_to_confirm(state) else floor(state)

    return next_move


def is_proven(state: State) -> bool:
    """Every check passed, and the planner has looked whether the newest wishes need some."""
    return is_done(state) and not unplanned_wishes(state)


def iterate_floor(team: TeamSpec, budget: Budget) -> Floor:
    rounds = at_most(
        budget.rounds, with_help(team.help_after, with_confirmation(plan_then_iterate)), of="coder"
    )
    pleased = unless_never_pleased(team.please_after, unless_stuck(team.stuck_after, rounds))
    return until_done(is_proven, until_accepted(with_challenges(pleased)))
