"""What confirms a change, and what its planner is asked about."""

import msgspec
import pytest
from msgspec.structs import replace
from team.states import STARTED, chat, planned, ran, version

from septet.domain.events import EvidenceFound, PersonSpoke, PlanProposed, RunFinished
from septet.domain.plans import Check, CommandSucceeds, ExampleHolds, Judged, Mends, Plan, Requirement
from septet.domain.runs import RunResult
from septet.domain.special_cases import Call, SpecialCases
from septet.domain.state import State
from septet.team.caveats import reservations
from septet.team.confirmations import calls_to_confirm

TARGET = "test_add.py::test_sum"


def called(*arguments: str, name: str = "add") -> Call:
    return Call(module="add", name=name, arguments=arguments, tests=(TARGET,))


TESTED = [called("10", "7"), called("0", "1"), called("2", "3"), called("4", "4")]


def mended(*added: Check, questions: bool = True, told: bool = False, planner: bool = True) -> State:
    """A chat that mends a test of the project's, and whose plan has these checks besides, all of which passed."""
    items = [Requirement(id="P1", text="add", check=Mends(target=TARGET))]
    items += [Requirement(id=f"P{place}", text="more", check=one) for place, one in enumerate(added, start=2)]
    events = [*planned()]
    if not planner:
        team = STARTED.team
        events[0] = replace(
            STARTED,
            team=replace(team, members=tuple(one for one in team.members if one.role != "planner")),
        )
    events = [*events[:3], PlanProposed(plan=Plan(items=tuple(items)), by="septet"), *version(1, "a")]
    runs = [one for one in ran(1, "a", green=True) if isinstance(one, RunFinished)]
    found = SpecialCases(
        calls=tuple(TESTED), questions=(called("2", "3"), called("2", "8")) if questions else ()
    )
    looked = replace(
        runs[0],
        id="v1 special cases",
        purpose="special cases",
        about="",
        result=RunResult(exit_code=0, stdout=msgspec.json.encode(found).decode()),
    )
    checks = [replace(runs[0], id=f"check {one.id}", purpose="check", about=one.id) for one in items]
    evidence = [
        EvidenceFound(item=one.id, check=one.check, passed=True, detail="", tree=runs[0].tree)
        for one in items
        if not isinstance(one.check, Judged)
    ]
    return chat([*events, *runs, *checks, looked, *evidence])


SAID = "the coder could read every input that shows P1, and none is held back"


def test_tests_that_the_coder_could_read_are_said_and_asked_about() -> None:
    state = mended()
    assert SAID in reservations(state)
    assert calls_to_confirm(state) == ["add.add(2, 3)", "add.add(2, 8)"]
    assert calls_to_confirm(mended(questions=False)) == []
    assert calls_to_confirm(mended(planner=False)) == []


@pytest.mark.parametrize(
    ("check", "is_said"),
    [
        (ExampleHolds(call="add.add(2, 8)", value="10", held=True), False),
        (ExampleHolds(call="add.add(2, 8)", value="10"), True),
        (ExampleHolds(call="add.add(2, 3)", value="5", held=True), True),
        (ExampleHolds(call="other.add(2, 8)", value="10", held=True), True),
        (CommandSucceeds(command="python other.py 2", prints="10", held=True), True),
    ],
)
def test_what_confirms_a_change_is_held_back_about_its_function_and_in_no_test(
    check: Check, is_said: bool
) -> None:
    state = mended(check)
    assert (SAID in reservations(state)) is is_said
    assert bool(calls_to_confirm(state)) is is_said


def test_a_function_is_asked_about_once() -> None:
    state = mended()
    assert state.plan.current is not None
    again = PlanProposed(plan=state.plan.current, asked=("add.add(2, 3)",))
    assert calls_to_confirm(replace(state, plan=replace(state.plan, confirmed=frozenset(again.asked)))) == []


HELD = Requirement(id="P3", text="more", check=ExampleHolds(call="add.add(2, 8)", value="10", held=True))


@pytest.mark.parametrize(
    ("added", "asked", "approved"),
    [
        ((HELD,), ("add.add(2, 8)",), True),
        ((), ("add.add(2, 8)",), True),
        ((HELD,), (), False),
        ((replace(HELD, check=ExampleHolds(call="add.add(2, 8)", value="10")),), ("add.add(2, 8)",), False),
        ((HELD, Requirement(id="P4", text="more")), ("add.add(2, 8)",), False),
    ],
)
def test_only_examples_that_are_held_back_and_asked_for_need_no_new_approval(
    added: tuple[Requirement, ...], asked: tuple[str, ...], *, approved: bool
) -> None:
    before = chat(planned()).plan.current
    assert before is not None
    plan = replace(before, items=(*before.items, *added))
    assert chat([*planned(), PlanProposed(plan=plan, asked=asked)]).plan.approved is approved
    other = replace(plan, run="python other.py")
    assert not chat([*planned(), PlanProposed(plan=other, asked=asked)]).plan.approved
    wish = [*planned(), PersonSpoke(text="more, please"), PlanProposed(plan=plan, asked=asked)]
    assert chat(wish).plan.approved is (not added)
