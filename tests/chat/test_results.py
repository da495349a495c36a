"""Where a chat stands, in words that a person who was away understands."""

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, ran, reviewed, said, version

from septet.chat.results import ProofCost, result_of, run_outcome, run_title, status, wrapped_cell
from septet.domain.events import ChatEnded, PlanApproved, PlanProposed, RunFinished, TurnOpened
from septet.domain.plans import CommandSucceeds, ExampleHolds, Requirement, plan_digest
from septet.domain.pytest_report import TestCase, TestReport
from septet.domain.runs import RunResult
from septet.team.evidence import reservations


def test_a_chat_that_waits_says_for_what() -> None:
    proposed = [STARTED, TurnOpened(speaker="planner"), said("planner", "a plan"), PlanProposed(plan=PLAN)]
    assert status(chat(proposed)) == "unfinished, it was the planner's turn"
    assert (
        status(chat([*proposed, TurnOpened(speaker="proxy")])) == "waits for the person to approve the plan"
    )
    assert (
        status(chat([*planned(), *version(1, "a"), TurnOpened(speaker="proxy")]))
        == "waits for the person to look at it"
    )


def test_an_end_is_said_once() -> None:
    stopped = ChatEnded(reason="stopped", detail="stopped by the person")
    assert status(chat([*planned(), stopped])) == "stopped by the person"
    bound = ChatEnded(reason="bound", detail="8 rounds are used up")
    assert (
        status(chat([*planned(), bound])) == "stopped unfinished, a bound was reached (8 rounds are used up)"
    )


def test_the_result_tells_what_the_proof_took() -> None:
    assert result_of(chat(planned())).proof is None
    assert result_of(chat(planned())).versions == 0
    assert {line.version for line in result_of(chat(planned())).evidence} == {0}
    state = chat([*planned(), *version(1, "a"), *ran(1, "a", green=True)])
    assert result_of(state).versions == 1
    assert {line.version for line in result_of(state).evidence} == {1}
    assert result_of(state).proof == ProofCost(checks=3, check_seconds=0.0, controls=1, control_seconds=0.0)


def test_a_check_that_fails_without_the_change_is_as_it_should_be() -> None:
    result = RunResult(exit_code=1, stdout="\nno such name\n")
    run = RunFinished(id="r", purpose="check on base", about="P1", command="c", tree="t", result=result)
    outcome = run_outcome(run)
    assert run_title(run) == "check P1 without the change"
    assert (outcome.text, outcome.good) == ("exit 1, prints 'no such name'", True)


PASSED, FAILED = (TestCase(id=f"test_a.py::{name}", outcome=name) for name in ("passed", "failed"))


@pytest.mark.parametrize(
    ("code", "report", "good"),
    [
        (0, None, True),
        (1, None, False),
        (0, TestReport(cases=(PASSED,)), True),
        (1, TestReport(cases=(PASSED,)), False),
        (0, TestReport(cases=(PASSED, FAILED)), False),
        (0, TestReport(cases=(PASSED,), hooks=("conftest.py",)), False),
        (0, TestReport(cases=(PASSED,), foreign=("add",)), False),
        (0, TestReport(cases=(PASSED,), complete=False), False),
        (0, TestReport(), False),
    ],
)
def test_tests_ended_well_if_all_passed_and_the_report_can_be_trusted(
    code: int, report: TestReport | None, good: bool
) -> None:
    result = RunResult(exit_code=code, tests=report)
    run = RunFinished(id="r", purpose="tests", command="pytest", tree="t", result=result)
    assert run_outcome(run).good is good


def test_what_only_the_coders_own_tests_show_is_not_said_to_have_passed_all_checks() -> None:
    done = ChatEnded(reason="done", detail="every check passed")
    shown = [*version(1, "a"), *ran(1, "a", green=True), *reviewed(1, accept=True)]
    own = chat([*planned(), *shown, done])
    assert status(own) == "done; only the coder's own tests show P1; the coder knew every example of P2"
    assert (result_of(own).status, result_of(own).exit_code) == ("done", 0)

    def told(check: CommandSucceeds) -> str:
        both = replace(
            PLAN, items=(PLAN.items[0], Requirement(id="P2", text=PLAN.items[0].text, check=check))
        )
        return status(
            chat([STARTED, PlanProposed(plan=both), PlanApproved(plan=plan_digest(both)), *shown, done])
        )

    command = CommandSucceeds(command="python add.py 2 3", prints="5")
    assert told(command) == "done; the coder knew every example of P1 and P2"
    assert told(replace(command, held=True)) == "done, all checks passed"
    assert told(replace(command, command="python add.py")) == "done, all checks passed", "it is given nothing"


def test_examples_that_the_coder_knew_all_are_said_to_be_so_and_one_held_back_is_enough() -> None:
    def told(*held: bool) -> list[str]:
        checks = [
            ExampleHolds(call=f"add.add({n}, 1)", value=f"{n + 1}", held=one) for n, one in enumerate(held)
        ]
        items = [Requirement(id=f"P{n}", text="sums", check=check) for n, check in enumerate(checks, 1)]
        return reservations(chat([STARTED, PlanProposed(plan=replace(PLAN, items=tuple(items)))]))

    assert told(False) == ["the coder knew every example of P1"]
    assert told(False, False) == ["the coder knew every example of P1 and P2"]
    assert told(False, True) == []


def test_a_long_name_in_the_table_is_broken_between_its_parts() -> None:
    assert wrapped_cell("tests test_bars.py::test_totals_per_category_first", 26) == [
        "tests",
        "test_bars.py::test_totals_",
        "per_category_first",
    ]
    assert wrapped_cell("tests test_a.py::test_b", 30) == ["tests test_a.py::test_b"]
