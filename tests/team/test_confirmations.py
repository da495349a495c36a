"""A special case counts until an example that the coder has not seen bears it out, or nobody can be asked."""

import pytest
from msgspec.structs import replace
from team.states import STARTED, chat, version

from septet.domain.events import (
    Event,
    EvidenceFound,
    PlanApproved,
    PlanProposed,
    RunFinished,
    SpecialCase,
    VersionWritten,
)
from septet.domain.plans import Check, CommandSucceeds, ExampleHolds, Plan, Requirement, plan_digest
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.team.caveats import listed_cases
from septet.team.confirmations import calls_to_confirm
from septet.team.evidence import evidence_report
from septet.team.witnesses import gives, is_same_call, makes_call, open_special_cases

CASE = SpecialCase(place="add.py:3", call="add.add(2, 3)", gives="6", without="5", general=True)
LISTED = replace(CASE, general=False)
KNOWN = ExampleHolds(call="add.add(2, 3)", value="6")
HELD = ExampleHolds(call="add.add(2,3)", value="6", held=True)


def state_of(
    case: SpecialCase, *witnesses: Check, passed: bool = True, held: bool = True, planner: bool = True
) -> State:
    """The first requirement has a special case; the others are held back, and passed or not."""
    items = tuple(
        Requirement(id=f"P{place}", text="x", check=one)
        for place, one in enumerate([KNOWN, *witnesses], start=1)
    )
    plan, written = Plan(items=items), version(1, "a")[-1]
    assert isinstance(written, VersionWritten)
    members = tuple(one for one in STARTED.team.members if planner or one.role != "planner")
    events: list[Event] = [
        replace(STARTED, team=replace(STARTED.team, members=members)),
        PlanProposed(plan=plan),
        PlanApproved(plan=plan_digest(plan)),
        written,
        RunFinished(
            id="tests", purpose="tests", command="c", tree=written.tree, result=RunResult(exit_code=0)
        ),
    ]
    for item in items:
        first = item.id == "P1"
        run = RunFinished(
            id=f"check {item.id}",
            purpose="check",
            about=item.id,
            command="c",
            tree=written.tree,
            result=RunResult(exit_code=0),
        )
        found = EvidenceFound(
            item=item.id,
            check=item.check,
            passed=passed if first else held,
            detail="seen",
            tree=written.tree,
            special=(case,) if first else (),
        )
        events += [run, found]
    return chat(events)


def is_open(state: State) -> bool:
    return bool(open_special_cases(state, state.plan.items[0]))


@pytest.mark.parametrize(
    ("witness", "held", "still_open"),
    [
        (HELD, True, False),
        (HELD, False, True),
        (replace(HELD, call="add.add(3, 2)"), True, True),
        (replace(HELD, held=False), True, True),
        (CommandSucceeds(command='python -c "x.add(2, 3)"', prints="6", held=True), True, False),
        (CommandSucceeds(command='python -c "x.add(2, 3)"', held=True), True, True),
        (CommandSucceeds(command="python add.py 2 3", prints="6", held=True), True, True),
    ],
)
def test_an_example_that_is_held_back_bears_a_special_case_out(
    witness: Check, held: bool, still_open: bool
) -> None:
    state = state_of(CASE, witness, held=held)
    assert is_open(state) is still_open
    assert listed_cases(state) == (["P1"] if still_open else [])
    line = evidence_report(state)[0]
    assert line.is_met is not still_open
    told = "add.py:3 is there for what is tested only: without it add.add(2, 3) gives 5, not 6; "
    assert line.detail == (f"seen; {told}make it general, or challenge the check" if still_open else "seen")


def test_a_check_that_does_not_hold_has_no_special_cases() -> None:
    state = state_of(CASE, passed=False)
    assert (is_open(state), listed_cases(state)) == (False, [])


@pytest.mark.parametrize(
    ("case", "planner", "still_open"),
    [(CASE, True, True), (CASE, False, True), (LISTED, True, True), (LISTED, False, False)],
)
def test_a_list_of_cases_is_not_refused_where_nobody_can_be_asked(
    case: SpecialCase, planner: bool, still_open: bool
) -> None:
    state = state_of(case, planner=planner)
    assert is_open(state) is still_open
    assert listed_cases(state) == ["P1"]


def test_the_planner_is_asked_of_a_call_once_all_has_been_looked_at() -> None:
    asked = state_of(CASE)
    assert calls_to_confirm(asked) == ["add.add(2, 3)"]
    assert calls_to_confirm(replace(asked, work=replace(asked.work, runs=()))) == []
    done = replace(asked, plan=replace(asked.plan, confirmed=frozenset({"add.add(2, 3)"})))
    assert calls_to_confirm(done) == []
    assert calls_to_confirm(state_of(CASE, planner=False)) == []
    assert calls_to_confirm(state_of(CASE, HELD)) == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("f(1, 'a')", 'f(1,"a")', True), ("f(1)", "f(2)", False), ("f(1)", "g(1)", False)],
)
def test_a_call_is_the_same_however_it_is_written(one: str, other: str, same: bool) -> None:
    assert is_same_call(one, other) is same


@pytest.mark.parametrize(
    ("command", "call", "made"),
    [
        ('python -c "Sums(1).add(2, 3)"', "sums.Sums.add(2, 3)", True),
        ("python -c 's.add(\"a\")'", "sums.Sums.add('a')", True),
        ('python -c "s.add(\\"a\\")"', "sums.Sums.add('a')", True),
        ('python -c "add(2, 3)"', "sums.add(2, 3)", False),
        ('python -c "s.add(2, 4)"', "sums.Sums.add(2, 3)", False),
    ],
)
def test_a_command_makes_the_call_of_a_method_of_whatever_object(command: str, call: str, made: bool) -> None:
    assert makes_call(command, call) is made


def test_an_outcome_is_told_as_what_it_is() -> None:
    told = [gives(one) for one in ("5", "raises KeyError", "does not end")]
    assert told == ["gives 5", "raises KeyError", "does not end"]
