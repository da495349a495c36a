"""When another mutant of the program is tried: as long as the tests of a requirement pass on all of them."""

import pytest
from msgspec.structs import replace
from team.states import GREEN, PLAN, STARTED, chat, version

from septet.domain.events import Event, PlanProposed, RunFinished, VersionWritten
from septet.domain.pytest_report import Outcome, TestCase, TestReport
from septet.domain.runs import Purpose, RunResult
from septet.team.controls import MUTANTS
from septet.team.evidence import needs_mutant

FIRST, SECOND, *_ = MUTANTS


def suite(purpose: Purpose, about: str = "", outcome: Outcome = "passed") -> RunFinished:
    written = version(1, "a")[-1]
    assert isinstance(written, VersionWritten)
    report = TestReport(cases=(TestCase(id="test_add.py::test_sum", outcome=outcome),))
    result = RunResult(exit_code=int(outcome != "passed"), stdout=GREEN, tests=report)
    return RunFinished(
        id=f"{purpose} {about}", purpose=purpose, about=about, command="c", tree=written.tree, result=result
    )


TESTED = suite("tests")


@pytest.mark.parametrize(
    ("controls", "needed"),
    [
        ([], True),
        ([suite("tests alone", FIRST)], True),
        ([suite("tests alone", FIRST, "failed")], False),
        ([suite("tests alone", FIRST), suite("tests alone", SECOND)], True),
        ([suite("tests alone", FIRST), suite("tests alone", SECOND, "failed")], False),
    ],
)
def test_another_mutant_is_tried_while_tests_pass_on_every_one_so_far(
    controls: list[RunFinished], needed: bool
) -> None:
    events: list[Event] = [STARTED, PlanProposed(plan=replace(PLAN, run="")), version(1, "a")[-1], TESTED]
    assert needs_mutant(chat([*events, *controls])) is needed
