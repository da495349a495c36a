"""The short forms of small models: plans, files and reviews read from them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from team.states import STARTED, chat, planned, ran, version

from septet.domain.events import (
    Confirmation,
    PersonSpoke,
    PlanProposed,
    ReviewGiven,
    TurnOpened,
    VersionWritten,
)
from septet.domain.plans import CommandSucceeds, Plan, Refusal, TestsPass, parse_plan, plan_text
from septet.domain.state import State
from septet.team.small_form import (
    SCHEMAS,
    file_names,
    is_checkable,
    is_json_reply,
    parse_small_files,
    parse_small_plan,
    parse_small_review,
    plan_from_goal,
    review_from_evidence,
)

GOAL = "write double(n)\n with tests"


def plan(*examples: str, kind: str = "function", goal: str = GOAL) -> Plan:
    text = msgspec.json.encode({"file": "double.py", "kind": kind, "examples": examples}).decode()
    found = parse_small_plan(goal, text, lenient=True)
    assert isinstance(found, Plan)
    return found


def test_the_goal_is_the_first_requirement_and_what_it_states_is_checked() -> None:
    found = plan("double(2) == 4", goal=f"{GOAL}\ndouble(2) == 4, and double(3) returns 6")
    assert found.items[0].text == "write double(n) with tests double(2) == 4, and double(3) returns 6"
    assert found.items[0].check == TestsPass(target="test_double.py")
    assert [item.text for item in found.items[1:]] == ["double(2) == 4", "double(3) == 6"]
    check = found.items[1].check
    assert isinstance(check, CommandSucceeds)
    assert check.command == "python -c 'from double import *; assert double(2) == 4'"
    assert found.guesses == ()
    assert parse_plan(plan_text(found)) == found


def test_what_the_planner_invents_is_a_guess_and_no_check() -> None:
    found = plan(
        "double(2) == 5",
        "assert double(3) == 6",
        "double(2) == 5",
        "double(1) == 2",
        goal=f"{GOAL}\ndouble(1) == 2",
    )
    assert [item.text for item in found.items[1:]] == ["double(1) == 2"]
    assert found.guesses == ("double(2) == 5", "double(3) == 6")
    assert parse_plan(plan_text(found)) == found


def test_a_stated_decimal_fraction_need_not_be_met_to_its_last_digit() -> None:
    check = plan(goal="half(0.2) == 0.1").items[1].check
    assert isinstance(check, CommandSucceeds)
    assert "abs(half(0.2) - 0.1) <= 1e-6" in check.command


def test_a_program_is_also_run() -> None:
    assert plan(kind="program").run == "python double.py"


@pytest.mark.parametrize(
    "example",
    [
        "double(2)",
        "double(2) == x",
        "double == 4",
        "double(2) == 4 == 4",
        "double(2) != 4",
        "import os",
        "total('data.csv') == 3",
        "f('a => b') == 1",
        "f(1) ==\n 2",
    ],
)
def test_what_a_machine_cannot_check_is_no_example(example: str) -> None:
    assert not is_checkable(example)


def test_a_plan_without_one_good_example_is_asked_for_once_more() -> None:
    text = '{"file": "total.py", "kind": "function", "examples": ["total(\'data.csv\') == 3"]}'
    assert isinstance(parse_small_plan("goal", text), Refusal)
    assert isinstance(parse_small_plan("goal", text, lenient=True), Plan)
    assert isinstance(parse_small_plan("goal", text.replace("data.csv", "1,2")), Plan)
    assert isinstance(parse_small_plan("goal", '{"file": "x.py", "kind": "program", "examples": []}'), Plan)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"file": 1}', '{"kind": "function"}'])
def test_what_is_not_the_form_is_refused_with_a_reason(text: str) -> None:
    assert isinstance(parse_small_plan("goal", text), Refusal)
    assert isinstance(parse_small_review(text, ""), Refusal)


PLANNED = '{"file": "x.py", "kind": "function", "examples": ["x({1: 2}) == 3"]}'
JUDGED = '{"line": "", "text": "", "verdict": "accept"}'


@pytest.mark.parametrize(
    "around", ["{}", "Sure! {{ **Here it is**:\n\n{}\n\nTell me more.", "```json\n{}\n```"]
)
def test_a_form_is_found_among_words(around: str) -> None:
    plan, review = around.format(PLANNED), around.format(JUDGED)
    assert is_json_reply(plan)
    assert is_json_reply(review)
    assert isinstance(parse_small_plan("goal", plan), Plan)
    assert not isinstance(parse_small_review(review, ""), Refusal)


@pytest.mark.parametrize("text", ["1. it adds\n   check: example x.x({'a': 1}) => {}", '{{"file": 1}'])
def test_a_plan_in_words_is_no_form_because_it_has_braces(text: str) -> None:
    assert is_json_reply(text) == text.startswith("{")


@given(example=st.text(max_size=40))
def test_any_example_leaves_a_plan_that_can_be_shown_and_read(example: str) -> None:
    found = plan(example)
    assert parse_plan(plan_text(found)) == found


def test_files_are_named_by_the_plans_tests() -> None:
    assert file_names(chat(planned())) == ("add.py", "test_add.py")


def test_a_reply_is_the_plans_two_files_or_what_is_lacking() -> None:
    code = "def add(a, b):\n    return a + b"
    test = "def test_sum():\n    assert add(2, 3) == 5"
    found = parse_small_files(chat(planned()), f"```python\n{code}\n\n{test}\n```")
    assert not isinstance(found, Refusal)
    assert [file.path for file in found] == ["add.py", "test_add.py"]
    assert code in found[0].text
    assert test in found[1].text
    assert isinstance(parse_small_files(chat(planned()), "Sorry."), Refusal)


@pytest.mark.parametrize(
    ("line", "text", "verdict", "expected"),
    [
        ("return 1", "wrong", "revise", "revise"),
        ("return 2", "wrong", "revise", "accept"),
        ("return 1", "", "revise", "accept"),
        ("", "", "accept", "accept"),
    ],
)
def test_a_finding_counts_only_about_a_line_that_exists(
    line: str, text: str, verdict: str, expected: str
) -> None:
    reply = msgspec.json.encode({"line": line, "text": text, "verdict": verdict}).decode()
    review = parse_small_review(reply, "def f():\n    return 1\n")
    assert not isinstance(review, Refusal)
    assert review.verdict == expected


@pytest.mark.parametrize(
    ("green", "confirmation", "verdict"),
    [
        (False, None, "revise"),
        (True, Confirmation(verdict="contradicted", detail="f(1) gives 1 here and 2 elsewhere"), "revise"),
        (True, Confirmation(verdict="unconfirmed"), "revise"),
        (True, Confirmation(verdict="agreed"), "accept"),
        (True, None, None),
    ],
)
def test_evidence_that_speaks_for_itself_is_the_review(
    green: bool, confirmation: Confirmation | None, verdict: str | None
) -> None:
    written = [
        msgspec.structs.replace(event, confirmation=confirmation)
        if isinstance(event, VersionWritten)
        else event
        for event in version(1, "a")
    ]
    review = review_from_evidence(chat([*planned(), *written, *ran(1, "a", green=green)]))
    assert (review.verdict if review else None) == verdict


def test_schemas_are_closed() -> None:
    for schema in SCHEMAS.values():
        assert schema["additionalProperties"] is False


def started(goal: str, **changes: object) -> State:
    return chat([replace(STARTED, goal=goal, **changes), TurnOpened(speaker="planner")])


def test_a_goal_that_states_name_and_examples_is_its_own_plan() -> None:
    found = plan_from_goal(started("Write double(n).\ndouble(2) == 4"))
    assert found is not None
    assert [item.text for item in found.items] == ["Write double(n). double(2) == 4", "double(2) == 4"]
    assert found.items[0].check == TestsPass(target="test_double.py")
    assert found.guesses == ()


@pytest.mark.parametrize(
    ("name", "file"), [("Sum_Of", "sum_of"), ("statistics", "solution"), ("test_it", "solution")]
)
def test_the_file_of_such_a_plan_hides_no_module_and_is_no_test(name: str, file: str) -> None:
    found = plan_from_goal(started(f"{name}(2) == 4"))
    assert found is not None
    assert found.items[0].check == TestsPass(target=f"test_{file}.py")


@pytest.mark.parametrize(
    "goal",
    ["write double(n)", "write a clock", "in calc.py double(2) == 4", "double(2) == 4, read notes.txt"],
)
def test_another_goal_is_planned_by_the_model(goal: str) -> None:
    assert plan_from_goal(started(goal)) is None


def test_what_the_person_said_about_a_plan_is_not_ignored() -> None:
    state = started("double(2) == 4")
    assert plan_from_goal(replace(state, facts=("numbers are strings",))) is None
    proposed = plan_from_goal(state)
    assert proposed is not None
    again = chat(
        [
            replace(STARTED, goal="double(2) == 4"),
            TurnOpened(speaker="planner"),
            PlanProposed(plan=proposed),
            PersonSpoke(text="call the file twice.py"),
            TurnOpened(speaker="planner"),
        ]
    )
    assert plan_from_goal(again) is None


def test_the_same_code_is_reviewed_again_when_more_is_known_of_it() -> None:
    *begun, written = version(1, "a")
    assert isinstance(written, VersionWritten)
    doubted = replace(written, confirmation=Confirmation(verdict="unconfirmed", detail="too few"))
    agreed = replace(written, number=2, confirmation=Confirmation(verdict="agreed", detail="8 alike"))
    review = ReviewGiven(version=1, tree=written.tree, verdict="revise", findings=())
    first = [*planned(), *begun, doubted, *ran(1, "a", green=True), review]
    assert chat(first).work.review == review
    assert chat([*first, *begun, replace(doubted, number=2)]).work.review == review
    after = chat([*first, *begun, agreed])
    assert after.work.review is None
    assert after.work.evidence
