"""What became of tests: by the records of the run itself; in old logs by pytest's own closing summary."""

import json
from collections.abc import Mapping
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.pytest_report import (
    MAX_CASES,
    ItemCollected,
    PhaseEnded,
    TestCase,
    TestReport,
    build_test_report,
    one_case,
    parse_pytest_report,
    parse_report,
)
from septet.domain.runs import RunResult

OUTPUT = """\
PASSED test_a.py::test_fake - printed by the program
=========================== short test summary info ============================
PASSED test_a.py::test_one
PASSED test_a.py::test_many[a b]
PASSED sub/test_b.py::TestB::test_two
FAILED test_a.py::test_bad - assert 1 == 2
XFAIL test_a.py::test_known - a reason
ERROR test_c.py - ModuleNotFoundError: No module named 'c'
3 passed, 1 failed, 1 error in 0.10s
"""
NONCE = "n0nce"
END = {"type": "end", "status": 0, "whole": True}
Facts = Mapping[str, object]


def lines(*records: Facts, nonce: str = NONCE) -> bytes:
    return b"".join(f"{nonce} {n} {json.dumps(record)}\n".encode() for n, record in enumerate(records))


def phase(test: str, when: str = "call", raised: str = "", reported: str = "passed", **more: object) -> Facts:
    return {"type": "phase", "id": test, "when": when, "raised": raised, "reported": reported, **more}


def test_in_an_old_log_only_the_last_summary_counts() -> None:
    report = parse_report(OUTPUT)
    assert report.passed == (
        "test_a.py::test_one",
        "test_a.py::test_many[a b]",
        "sub/test_b.py::TestB::test_two",
    )
    assert report.failed == ("test_a.py::test_bad", "test_c.py")
    assert report.counts == "1 failed, 1 error, 3 passed, 1 expected to fail"


def test_without_a_summary_nothing_ran() -> None:
    assert parse_report("PASSED test_a.py::test_fake\n") == TestReport()


def test_words_of_a_run_that_has_a_report_are_not_read() -> None:
    assert RunResult(exit_code=0, stdout=OUTPUT, tests=TestReport()).report == TestReport()
    assert RunResult(exit_code=0, stdout=OUTPUT).report == parse_report(OUTPUT)


def test_a_target_covers_a_file_a_class_and_parametrised_cases() -> None:
    report = parse_report(OUTPUT)
    assert report.about("test_a.py::test_many").passed == ("test_a.py::test_many[a b]",)
    assert report.about("sub").passed == ("sub/test_b.py::TestB::test_two",)
    assert report.about("sub/test_b.py::TestB").passed == ("sub/test_b.py::TestB::test_two",)
    assert report.about("test_a.py").failed == ("test_a.py::test_bad",)
    assert report.about("test_a.py::test_on") == TestReport()


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        (phase("t"), "passed"),
        (phase("t", raised="failed", reported="failed"), "failed"),
        (phase("t", raised="failed", reported="passed"), "failed"),
        (phase("t", raised="failed", reported="skipped"), "failed"),
        (phase("t", raised="failed", reported="skipped", expected=True), "xfailed"),
        (phase("t", raised="xfail", reported="passed"), "xfailed"),
        (phase("t", raised="", reported="failed"), "failed"),
        (phase("t", raised="", reported="skipped"), "skipped"),
        (phase("t", raised="", reported="passed", expected=True), "xpassed"),
        (phase("t", when="setup", raised="failed", reported="passed"), "error"),
        (phase("t", when="teardown", raised="failed", reported="failed"), "error"),
        (phase("t", when="setup"), "not run"),
    ],
)
def test_the_worse_of_what_was_raised_and_what_was_reported_decides(facts: Facts, outcome: str) -> None:
    report = parse_pytest_report(lines({"type": "item", "id": "t"}, facts, END), NONCE)
    assert [case.outcome for case in report.cases] == [outcome]
    assert report.complete


def test_the_worst_phase_decides_and_the_times_add_up() -> None:
    told = lines(
        phase("t", "setup", seconds=0.25),
        phase("t", seconds=0.5),
        phase("t", "teardown", "failed", "failed"),
        END,
    )
    assert parse_pytest_report(told, NONCE).cases == (
        TestCase(id="t", outcome="error", phase="teardown", seconds=0.75),
    )


WHOLE = lines({"type": "item", "id": "a"}, phase("a"), {"type": "item", "id": "b"}, phase("b"), END)


@given(st.integers(min_value=0, max_value=len(WHOLE) - 1))
def test_a_report_that_was_cut_anywhere_is_not_complete_and_says_nothing_more(at: int) -> None:
    report = parse_pytest_report(WHOLE[:at], NONCE)
    assert not report.complete
    assert set(report.passed) <= {"a", "b"}


@given(st.integers(min_value=0, max_value=4), st.binary(min_size=1, max_size=40))
def test_whatever_is_written_between_two_lines_spoils_the_report(at: int, junk: bytes) -> None:
    before, after = WHOLE.splitlines(keepends=True)[:at], WHOLE.splitlines(keepends=True)[at:]
    report = parse_pytest_report(b"".join([*before, junk, *after]), NONCE)
    assert not report.complete
    assert set(report.passed) <= {"a", "b"}


@pytest.mark.parametrize(
    "told",
    [
        b"",
        lines(END, nonce="another"),
        lines(END, END)[len(lines(END)) :],
        lines({"type": "end", "status": 0, "whole": False}),
        lines(END, phase("t")),
        lines({"type": "no such thing"}, END),
    ],
)
def test_what_does_not_come_from_our_part_of_pytest_is_no_report(told: bytes) -> None:
    assert not parse_pytest_report(told, NONCE).complete


def test_hooks_are_named_once() -> None:
    hook: Facts = {"type": "hook", "name": "pytest_pyfunc_call", "where": "conftest.py"}
    report = parse_pytest_report(lines(hook, hook, END), NONCE)
    assert report.hooks == ("conftest.py: pytest_pyfunc_call",)
    assert (report.complete, report.trustworthy) == (True, False)


def test_of_other_tests_only_the_end_is_known() -> None:
    assert one_case("node --test", passed=True, complete=True).passed == ("node --test",)
    assert one_case("node --test", passed=False, complete=True).failed == ("node --test",)
    assert one_case("node --test", passed=False, complete=False).counts == "1 not run"


@pytest.mark.parametrize(("count", "complete"), [(MAX_CASES, True), (MAX_CASES + 1, False)])
def test_a_report_that_is_too_long_for_a_log_is_not_complete(count: int, complete: bool) -> None:
    report = build_test_report((ItemCollected(id=f"t{number}") for number in range(count)), complete=True)
    assert (report.complete, len(report.cases)) == (complete, MAX_CASES)


def test_the_seconds_of_all_phases_of_a_test_are_added_and_rounded() -> None:
    phases = [PhaseEnded(id="t", when=when, raised="", reported="passed", seconds=0.11111) for when in WHEN]
    (case,) = build_test_report([ItemCollected(id="t"), *phases], complete=True).cases
    assert case == TestCase(id="t", outcome="passed", phase="setup", seconds=0.3333)


WHEN: tuple[Literal["setup", "call", "teardown"], ...] = ("setup", "call", "teardown")
