"""What a planner is asked to confirm: calls that only special code answers, and changes that nothing else shows."""

from collections.abc import Sequence

from septet.domain.plans import Requirement
from septet.domain.pytest_report import covers
from septet.domain.special_cases import Call
from septet.domain.state import State
from septet.team.evidence import author_of, is_examined, shortcomings, tested_target
from septet.team.witnesses import (
    can_ask_for_examples,
    function_of,
    is_held_back,
    open_special_cases,
    special_cases_found,
)


def readable_items(state: State) -> list[str]:
    """Requirements of a change that only tests show which the coder could read, and did not write."""
    return [
        item.id
        for item in state.plan.items
        if (target := tests_that_show(state, item)) is not None
        and author_of(state, item.check) in ("repository", "person")
        and not is_held_back(state, item, calls_of_tests(special_cases_found(state).calls, target))
    ]


def tests_that_show(state: State, item: Requirement) -> str | None:
    """The tests by which a requirement is met, and without the change is not; None if it is not met by tests."""
    found = state.work.evidence.get(item.id)
    return tested_target(item.check) if found and found.passed and not found.held_before else None


def calls_of_tests(calls: Sequence[Call], target: str) -> list[str]:
    return [
        f"{one.module}.{one.text}"
        for one in calls
        if not target or any(covers(target, test) for test in one.tests)
    ]


def calls_to_confirm(state: State) -> list[str]:
    """Calls of which the planner has to say, once, what the goal wants: those that only special code answers and, where
    nothing is held back of a change, some of those that show it and some beside them.
    """
    if not can_ask_for_examples(state) or not is_examined(state):
        return []
    special = special_cases_to_confirm(state)
    beside = [] if not special and shortcomings(state) else calls_nobody_confirms(state)
    return [*dict.fromkeys((*special, *beside))]


def special_cases_to_confirm(state: State) -> list[str]:
    """Calls that only code which knows them answers, and of which the planner was not asked yet."""
    calls = [case.call for item in state.plan.items for case in open_special_cases(state, item)]
    return [one for one in calls if one not in state.plan.confirmed]


def calls_nobody_confirms(state: State) -> list[str]:
    """Calls of functions that nothing shows but what the coder could read; each function is asked about once."""
    readable, known = readable_items(state), set(map(function_of, state.plan.confirmed))
    calls = [
        call
        for item in state.plan.items
        if item.id in readable and (target := tests_that_show(state, item)) is not None
        for call in calls_of_tests(special_cases_found(state).questions, target)
    ]
    return [one for one in calls if function_of(one) not in known]
