"""The autocoder's floor policy: check everything without a model, then the coder chooses one action, and so on."""

from collections.abc import Mapping

from septet.common.text import pluralize
from septet.domain.events import DecisionRecorded
from septet.domain.state import State
from septet.domain.teams import Budget, TeamSpec
from septet.team.baseline import tests_of
from septet.team.evidence import is_done, shortcomings
from septet.team.floor import End, Floor, Move, Speak, at_most, unless_stuck, until_done

DISAGREEMENT = "disagreement"
GREEN = "green"


def reason_and_act(state: State) -> Move:
    """The floor policy: reason after each change; review once all checks are green; else act."""
    if state.plan.current is None:
        return Speak(speaker="planner")
    if not state.plan.approved:
        return Speak(speaker="planner" if state.talk.remarks else state.team.person)
    if state.work.diagnosis is None:
        return Speak(speaker="runner")
    if state.work.diagnosis.case == GREEN and state.work.review is None:
        return Speak(speaker="reviewer")
    return Speak(speaker="coder")


def autocoder_floor(team: TeamSpec, budget: Budget) -> Floor:
    rounds = at_most(budget.rounds, reason_and_act, of="coder")
    return until_done(is_done, unless_circling(team.stuck_after, unless_stuck(team.stuck_after, rounds)))


def unless_circling(times: int, floor: Floor) -> Floor:
    """End when the code is once more what it was before, so many times in all, and nobody has a new idea."""

    def next_move(state: State) -> Move:
        trees = [version.tree for version in state.work.versions]
        if not trees or trees.count(trees[-1]) < times or state.talk.remarks:
            return floor(state)
        return End(reason="no_progress", detail=f"the code was the same {pluralize(times, 'time')} in all")

    return next_move


def diagnose(
    state: State, by: str, sources: Mapping[str, str], faults: Mapping[str, str]
) -> DecisionRecorded:
    """The decision of the reasoning step; problems have an order in which they must be solved."""
    case, what, why = verdict(state, sources, faults)
    return DecisionRecorded(by=by, case=case, what=what, why=why)


def verdict(state: State, sources: Mapping[str, str], faults: Mapping[str, str]) -> tuple[str, str, str]:
    if not sources:
        return "empty", "the program is to be written", "there is no file yet"
    if faults:
        path, why = next(iter(sorted(faults.items())))
        return "broken", f"{path} is wrong", why
    troubles = shortcomings(state)
    failing = tests_of(state).failed
    if failing:
        return (
            DISAGREEMENT,
            "code and test disagree",
            f"{', '.join(failing[:5])} fails: the plan decides which is wrong",
        )
    if troubles:
        return "unmet", "something is missing", "; ".join(troubles)
    return GREEN, "nothing is to be changed", "the program runs, its tests pass and every check is met"
