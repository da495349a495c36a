"""What a version's tests say beside those of the untouched base: what is new, what broke, what chance decides."""

import pytest
from msgspec.structs import replace
from team.states import STARTED, chat

from septet.domain.events import BaseSurveyed, ChatStarted, Event, PlanProposed, RunFinished, VersionWritten
from septet.domain.files import FileRef, tree_of
from septet.domain.plans import Mends, Plan, Requirement, TestsPass
from septet.domain.pytest_report import Outcome, TestCase, TestReport
from septet.domain.runs import LimitName, PlannedRun, Purpose, RunResult
from septet.domain.state import State
from septet.team.baseline import (
    AFFECTED,
    ENVIRONMENT_REMEDY,
    WHOLE_SUITE,
    baseline_report,
    broken_tests,
    cannot_start,
    changed_tests,
    changes_program,
    chosen_tests,
    failure_line,
    files_of_tests,
    files_that_finish,
    found_tests_of,
    has_baseline,
    is_endless,
    is_long,
    list_tests,
    lost_tests,
    mending_plan,
    needs_base_run,
    never_starts,
    new_tests,
    newly_red,
    open_repeats,
    suite_notes,
    suite_runs,
    touches_tests,
    unchanged_by_version,
    unstable_tests,
)
from septet.team.baseline import tests_are_evidence as are_evidence
from septet.team.baseline import tests_of as compared_tests
from septet.team.baseline import tests_to_mend as named_to_mend

SURVEY = BaseSurveyed(kind="git", root="/p", tests="pytest", tests_source="pyproject.toml")
COMMAND = replace(SURVEY, tests="make check")
A, B, C = "tests/test_a.py::one", "tests/test_a.py::two", "test_b.py::three"
AGAIN = PlannedRun(purpose="tests again")
PART = PlannedRun(purpose="tests", about=AFFECTED)
BASE_PART = PlannedRun(purpose="baseline", about=AFFECTED)


def report(**outcomes: Outcome) -> TestReport:
    """A report of the tests A, B, C by their letters."""
    ids = {"a": A, "b": B, "c": C}
    return TestReport(cases=tuple(TestCase(id=ids[name], outcome=how) for name, how in outcomes.items()))


def result(
    tests: TestReport | None = None, *, code: int = 0, seconds: float = 1.0, stopped: LimitName | None = None
) -> RunResult:
    return RunResult(exit_code=code, tests=tests, seconds=seconds, stopped_by=stopped)


def run(
    tests: TestReport | RunResult, purpose: Purpose = "tests", about: str = "", *only: str
) -> RunFinished:
    done = tests if isinstance(tests, RunResult) else result(tests)
    return RunFinished(
        id=f"{purpose} {about}", purpose=purpose, about=about, command="c", tree="", result=done, only=only
    )


def files(*paths: str) -> tuple[FileRef, ...]:
    return tuple(FileRef(path=path, sha256=path, size=1) for path in paths)


def state_of(
    base: TestReport | RunResult | None,
    *runs: RunFinished,
    survey: BaseSurveyed = SURVEY,
    changed: tuple[str, ...] = ("add.py",),
    goal: str = "g",
    plan: Plan | None = None,
) -> State:
    """A version that changed files of a project, and the runs of its tests."""
    events: list[Event] = [replace(STARTED, goal=goal), survey]
    events += [PlanProposed(plan=plan)] if plan else []
    events += [] if base is None else [run(base, "baseline")]
    written, tree = files(*changed), tree_of(files(*changed))
    events += [VersionWritten(number=1, files=written, tree=tree)] if changed else []
    return chat([*events, *(replace(one, tree=tree) for one in runs)])


ALL = report(a="passed", b="passed", c="passed")


def test_without_a_run_of_the_base_nothing_is_compared() -> None:
    state = state_of(None, run(report(a="failed")))
    assert not has_baseline(state)
    assert not has_baseline(chat([STARTED]))
    assert baseline_report(state) == TestReport()
    assert (is_long(state), is_endless(state)) == (False, False)
    assert suite_notes(state) == []
    assert open_repeats(state) == []
    assert compared_tests(state).failed == (A,)
    assert found_tests_of(state) is None
    assert are_evidence(state)


def test_what_failed_on_the_base_too_counts_as_expected_to_fail_and_the_rest_as_it_is() -> None:
    state = state_of(report(a="failed", b="passed"), run(report(a="failed", b="failed", c="passed")))
    assert compared_tests(state) == report(a="xfailed", b="failed", c="passed")
    assert suite_notes(state) == [f"failed before too: {A}"]
    healed = state_of(report(a="failed"), run(report(a="passed")))
    assert compared_tests(healed) == report(a="passed")
    assert changed_tests(healed) == {A}
    assert suite_notes(healed) == []


def test_a_part_of_the_base_that_ran_later_stands_for_what_ran_first() -> None:
    state = state_of(
        report(a="failed", b="passed"), run(report(a="passed", c="passed"), "baseline", AFFECTED)
    )
    assert baseline_report(state) == report(a="passed", b="passed", c="passed")


@pytest.mark.parametrize(
    ("base", "survey", "long", "endless"),
    [
        (result(ALL, seconds=30.0), SURVEY, False, False),
        (result(ALL, seconds=30.1), SURVEY, True, False),
        (result(ALL, stopped="time"), SURVEY, True, True),
        (result(ALL, stopped="cpu"), SURVEY, True, True),
        (result(ALL, stopped="memory"), SURVEY, False, False),
        (result(ALL, seconds=99.0, stopped="time"), COMMAND, False, False),
    ],
)
def test_a_suite_is_long_by_its_time_and_endless_if_that_ran_out(
    base: RunResult, survey: BaseSurveyed, long: bool, endless: bool
) -> None:
    state = state_of(base, survey=survey)
    assert (is_long(state), is_endless(state)) == (long, endless)
    assert suite_runs(state) == ([PART] if long else [WHOLE_SUITE])


def test_of_a_long_suite_the_whole_follows_when_what_is_affected_has_passed() -> None:
    long = result(ALL, seconds=31.0)
    part = run(report(a="passed"), "tests", AFFECTED, A)
    assert suite_runs(state_of(long, part)) == [PART, WHOLE_SUITE]
    assert suite_runs(state_of(long, run(report(a="failed"), "tests", AFFECTED, A))) == [PART]
    assert suite_runs(state_of(long, run(report(a="passed"), "tests", AFFECTED))) == [PART]
    assert suite_notes(state_of(long, part)) == [
        f"only a part of the suite was run, as it takes long on the base: {A}"
    ]


def test_of_an_endless_suite_only_what_is_affected_runs_and_on_the_base_as_well() -> None:
    endless = result(ALL, stopped="time")
    part = run(report(a="passed"), "tests", AFFECTED, A)
    assert suite_runs(state_of(endless, part)) == [PART, BASE_PART]
    assert suite_runs(state_of(endless, run(report(), "tests", AFFECTED, "new.py::x"))) == [PART]
    assert suite_runs(state_of(endless)) == [PART]
    assert suite_notes(state_of(endless, part)) == [
        f"only a part of the suite was run, as it did not end in its time on the base: {A}"
    ]


def test_of_an_endless_suite_the_files_whose_tests_all_came_to_an_end_are_known() -> None:
    cases = report(a="passed", b="not run", c="failed")
    assert files_that_finish(state_of(result(cases, stopped="time"))) == ("test_b.py",)
    assert files_that_finish(state_of(result(cases))) == ()


@pytest.mark.parametrize(
    ("goal", "survey", "tests"),
    [
        ("tests/test_a.py::one fails, fix it", SURVEY, ("tests/test_a.py::one",)),
        ("Make test_a.py and test_b.py pass again. test_a.py!", SURVEY, ("test_a.py", "test_b.py")),
        ("make test_a.py pass and the button blue", SURVEY, ()),
        ("fix add.py", SURVEY, ()),
        ("fix add.py and test_a.py", SURVEY, ()),
        ("fix it", SURVEY, ()),
        ("fix test_a.py", replace(SURVEY, tests=""), ()),
        ("fix test_a.py", COMMAND, ()),
    ],
)
def test_a_goal_that_only_names_failing_tests_asks_for_these(
    goal: str, survey: BaseSurveyed, tests: tuple[str, ...]
) -> None:
    assert named_to_mend(state_of(None, survey=survey, goal=goal)) == tests
    assert named_to_mend(chat([replace(STARTED, goal=goal)])) == ()


def test_such_a_goal_is_a_plan_by_itself() -> None:
    assert mending_plan(["test_a.py", "test_b.py"]) == Plan(
        items=(
            Requirement(id="P1", text="test_a.py passes", check=Mends(target="test_a.py")),
            Requirement(id="P2", text="test_b.py passes", check=Mends(target="test_b.py")),
        )
    )


def test_newly_red_is_what_passed_on_the_base_unless_the_report_cannot_be_trusted() -> None:
    red = report(a="failed", b="error", c="passed")
    base = report(a="passed", b="failed", c="passed")
    state = state_of(base, run(red), run(report(c="failed"), "tests as found"))
    assert newly_red(state, "now") == (A,)
    assert newly_red(state, "found") == (C,)
    assert newly_red(state, "base") == (A, C)
    assert newly_red(state_of(ALL, run(replace(red, complete=False))), "now") == ()
    both = state_of(ALL, run(report(a="failed")), run(report(a="failed"), "tests as found"))
    assert newly_red(both, "base") == (A,)


@pytest.mark.parametrize(("count", "red"), [(20, 20), (21, 0)])
def test_if_more_than_twenty_fail_chance_is_no_explanation(count: int, red: int) -> None:
    ids = [f"test_x.py::t{number}" for number in range(count)]

    def all_of(how: Outcome) -> TestReport:
        return TestReport(cases=tuple(TestCase(id=one, outcome=how) for one in ids))

    assert len(newly_red(state_of(all_of("passed"), run(all_of("failed"))), "now")) == red


def test_newly_red_tests_are_run_twice_more_with_and_without_the_change() -> None:
    red = run(report(a="failed", b="passed"))
    state = state_of(ALL, red, run(report(a="failed"), "tests again", "now 1"))
    assert open_repeats(state) == [replace(AGAIN, about=one) for one in ("now 2", "base 1", "base 2")]
    assert chosen_tests(state, replace(AGAIN, about="now 2")) == (A,)
    found = state_of(ALL, run(ALL), run(report(c="failed"), "tests as found"))
    assert [one.about for one in open_repeats(found)] == ["found 1", "found 2", "base 1", "base 2"]
    red = run(result(code=1))
    assert open_repeats(state_of(result(seconds=31.0), red, survey=COMMAND)) == []
    assert len(open_repeats(state_of(result(seconds=30.0), red, survey=COMMAND))) == 4


@pytest.mark.parametrize(
    ("first", "again", "base_again", "unstable"),
    [
        ("failed", "passed", None, True),
        ("failed", "failed", None, False),
        ("failed", "error", None, False),
        ("failed", "failed", "failed", True),
        ("passed", "failed", None, False),
    ],
)
def test_what_both_passed_and_failed_on_one_tree_is_unstable(
    first: Outcome, again: Outcome, base_again: Outcome | None, unstable: bool
) -> None:
    runs = [run(report(a=first)), run(report(a=again), "tests again", "now 1")]
    if base_again:
        runs.append(run(report(a=base_again), "tests again", "base 1"))
    state = state_of(report(a="passed"), *runs)
    assert unstable_tests(state) == ({A} if unstable else set())
    assert compared_tests(state) == report(a="unstable" if unstable else first)


def test_of_an_unstable_test_it_is_said_how_often_it_passed_where() -> None:
    now = [report(a="passed"), report(a="failed")]
    again = [run(told, "tests again", f"now {number}") for number, told in enumerate(now, start=1)]
    runs = [run(report(a="failed")), *again, run(report(a="passed"), "tests again", "base 1")]
    state = state_of(ALL, *runs)
    assert suite_notes(state) == [
        f"{A} is unstable and counts for nothing: it passed 1 of 3 times now and 2 of 2 times on the base"
    ]


def test_new_tests_are_those_that_pass_and_that_the_base_does_not_have() -> None:
    now = run(report(a="passed", b="failed", c="passed"))
    state = state_of(report(a="passed"), now, changed=("add.py", "test_b.py"))
    assert new_tests(state) == (C,)
    assert needs_base_run(state)
    assert chosen_tests(state, PlannedRun(purpose="tests on base")) == ("test_b.py",)
    also = state_of(report(a="passed"), now, run(report(c="passed"), "tests on base"), changed=("test_b.py",))
    assert not needs_base_run(also)
    assert unchanged_by_version(also) == {C}
    assert changed_tests(also) == set()
    assert suite_notes(also) == [f"passes without the change too: {C}"]
    untouched = state_of(report(a="passed"), now)
    assert not needs_base_run(untouched), "the team wrote no tests"


def test_of_a_suite_that_has_only_an_exit_code_all_is_new_if_its_tests_were_changed() -> None:
    passed = run(result())
    assert new_tests(state_of(result(), passed, survey=COMMAND, changed=("tests/a.c",))) == ("c",)
    assert new_tests(state_of(result(), passed, survey=COMMAND)) == ()


@pytest.mark.parametrize(
    ("changed", "found", "program"),
    [
        (("add.py",), (), True),
        (("add.py", "test_a.py"), (), True),
        (("test_a.py",), (), False),
        (("notes.txt",), (), False),
        (("add.py",), ("add.py",), False),
        (("add.py", "more.py"), ("add.py",), True),
    ],
)
def test_a_version_changes_the_program_if_it_has_other_files_of_it_than_were_found(
    changed: tuple[str, ...], found: tuple[str, ...], program: bool
) -> None:
    written = [
        VersionWritten(number=number, files=files(*paths), tree=f"{number}", found=number == 1)
        for number, paths in enumerate((found, changed), start=1)
    ]
    state = chat([STARTED, SURVEY, *written])
    assert changes_program(state) is program


@pytest.mark.parametrize(
    ("path", "touches"), [("test_a.py", True), ("tests/data.txt", True), ("add.py", False)]
)
def test_what_may_change_the_outcome_of_tests_is_seen_also_if_it_was_deleted(
    path: str, touches: bool
) -> None:
    assert touches_tests(state_of(None, changed=(path,))) is touches
    deleted = VersionWritten(number=1, files=(), tree="t", deleted=(path,))
    assert touches_tests(chat([STARTED, deleted])) is touches
    assert not touches_tests(chat([STARTED]))


def test_lost_is_what_passed_and_is_gone_and_broken_what_passed_and_fails_as_it_was_found() -> None:
    state = state_of(ALL, run(report(a="failed")), run(report(a="failed", c="passed"), "tests as found"))
    assert lost_tests(state) == [B, C]
    assert broken_tests(state) == [A, B]
    named = Plan(items=(Requirement(id="P1", text="x", check=TestsPass(target="tests/test_a.py::two")),))
    excused = state_of(ALL, run(report(a="failed")), run(report(c="passed"), "tests as found"), plan=named)
    assert broken_tests(excused) == [A]
    assert broken_tests(state_of(ALL, run(report(a="failed")))) == []
    part = run(report(a="failed"), "tests as found", "", "tests/test_a.py::one")
    assert broken_tests(state_of(ALL, run(report()), part)) == [A]
    only = state_of(ALL, run(report(), "tests", AFFECTED, "tests/test_a.py"))
    assert lost_tests(only) == [A, B]


def test_runs_are_limited_to_the_tests_they_are_about() -> None:
    endless, part = result(ALL, stopped="time"), run(ALL, "tests", AFFECTED, A, "new.py::x")
    state = state_of(endless, part)
    assert chosen_tests(state, BASE_PART) == (A,)
    assert chosen_tests(state, PlannedRun(purpose="tests as found")) == (A,)
    assert chosen_tests(state, PlannedRun(purpose="tests alone")) == (A, "new.py::x")
    assert chosen_tests(state, WHOLE_SUITE) == ()
    named = Plan(items=(Requirement(id="P1", text="x", check=TestsPass(target=A)),))
    assert chosen_tests(state_of(endless, part, plan=named), PlannedRun(purpose="tests alone")) == (
        "tests/test_a.py",
    )
    assert chosen_tests(state_of(None, plan=named), PlannedRun(purpose="tests alone")) == ()
    assert chosen_tests(state_of(ALL, part), BASE_PART) == (), "a short suite runs whole"
    assert chosen_tests(state_of(endless, part, survey=COMMAND), BASE_PART) == ()
    assert are_evidence(state_of(ALL, plan=named))
    assert not are_evidence(state_of(ALL))
    assert are_evidence(state_of(ALL, changed=("test_b.py",)))
    assert files_of_tests([A, B, C]) == ("tests/test_a.py", "test_b.py")


@pytest.mark.parametrize(
    ("ended", "stopped"),
    [
        (result(report(), code=4), True),
        (result(report(), code=5), False),
        (result(report(), code=0), False),
        (result(report(a="failed"), code=1), False),
        (result(report(), code=1, stopped="time"), False),
    ],
)
def test_tests_that_end_before_the_first_one_cannot_start(ended: RunResult, stopped: bool) -> None:
    state = state_of(ended, run(replace(ended, stderr="ImportError: no x\nbye")))
    assert cannot_start(state, run(ended)) is stopped
    assert never_starts(state) is stopped
    note = "the project's tests start neither before the change nor now (ImportError: no x; "
    assert (suite_notes(state) == [f"{note}{ENVIRONMENT_REMEDY})"]) is stopped
    assert not never_starts(state_of(ALL, run(ended)))
    assert not never_starts(state_of(ended))


@pytest.mark.parametrize(
    ("ended", "line"),
    [
        (RunResult(exit_code=1, stdout="E   KeyError: 1\nlast"), "E   KeyError: 1"),
        (RunResult(exit_code=1, stdout="first\n", stderr="last\n \n"), "last"),
        (RunResult(exit_code=3), "exit 3"),
        (RunResult(exit_code=1, stdout="x" * 301), "x" * 300),
    ],
)
def test_a_failure_is_told_by_the_line_that_names_the_error_or_else_the_last(
    ended: RunResult, line: str
) -> None:
    assert failure_line(ended) == line


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "t0"),
        (2, "t0 and t1"),
        (10, "t0, t1, t2, t3, t4, t5, t6, t7, t8 and t9"),
        (11, "t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 1 other test"),
        (13, "t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 3 other tests"),
    ],
)
def test_ten_tests_are_named_and_the_others_counted(count: int, text: str) -> None:
    assert list_tests(f"t{number}" for number in range(count)) == text


def test_a_teams_own_command_is_one_test_whose_outcome_is_its_exit_code() -> None:
    state = state_of(result(), run(result(code=1)), survey=COMMAND)
    assert (baseline_report(state).passed, compared_tests(state).failed) == (("c",), ("c",))
    assert compared_tests(state).complete
    late = state_of(result(), run(result(code=1, stopped="time")), survey=COMMAND)
    assert not compared_tests(late).complete
    own = ChatStarted(goal="g", team=replace(STARTED.team, tests="make"), workspace="/w")
    assert named_to_mend(chat([replace(own, goal="fix test_a.py"), SURVEY])) == ()


def test_an_old_log_tells_what_pytest_printed_and_a_command_with_a_report_is_believed() -> None:
    printed = RunResult(exit_code=1, stdout=f"=== short test summary info ===\nPASSED {A}\nFAILED {B} - x\n")
    old = compared_tests(state_of(None, run(printed)))
    assert (old.passed, old.failed) == ((A,), (B,))
    reported = state_of(result(ALL), run(report(a="passed", b="failed")), survey=COMMAND)
    assert compared_tests(reported) == report(a="passed", b="failed")
