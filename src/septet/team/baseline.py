"""Compares test results of a version with the base: what failed before, what is new, and what is unstable."""

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Literal, get_args

from msgspec.structs import replace

from septet.common.languages import run_command_prefix
from septet.common.text import join_words, pluralize
from septet.domain.events import RunFinished
from septet.domain.files import belongs_to_tests, is_test
from septet.domain.plans import Mends, Plan, Requirement, TestsPass
from septet.domain.pytest_report import FAILURES, Outcome, TestReport, covers, one_case
from septet.domain.runs import PlannedRun, Purpose, RunResult
from septet.domain.state import State

Tree = Literal["now", "found", "base"]
"""The tree that tests run on: the newest version, the same with the original tests, or the untouched base."""
REPEATS = ("1", "2")
MAX_REPEATED_TESTS = 20
"""If more tests than that fail, chance is no explanation."""
LONG_SUITE_SECONDS = 30.0
"""A suite that takes longer runs as a whole only if needed."""
MAX_LISTED_TESTS = 10
TEST_ID = re.compile(r"[\w./-]+\.py(?:::\w+)*(?:\[[^]\s]*])?")
MENDING_WORDS = frozenset(
    """a again all and are bug broken code does error errors fail failed failing fails fix for get green has have in is
    it its make mend must now of pass passes passing please program red repair should so still test tests that the
    them then they this to which with work works""".split()  # a list reads worse
)
"""A goal of only these words and test names asks for no more than that the tests pass."""
AFFECTED = "affected"
"""`about` of a run that is limited to the tests that the version may affect and those that the plan names."""
WHOLE_SUITE = PlannedRun(purpose="tests")
NO_TESTS = 5
"""The exit code of pytest where there is no test."""
ERROR_NAME = re.compile(r"(?:E +)?(?:\w+\.)*\w*(?:Error|Exception|ERROR)\b")
ENVIRONMENT_REMEDY = "an environment of the project's own helps: a .venv in the folder, or --packages ask"


def run_for(state: State, purpose: Purpose, about: str = "") -> RunFinished | None:
    """The newest version's run for that purpose."""
    return next((run for run in state.work.runs if (run.purpose, run.about) == (purpose, about)), None)


def has_baseline(state: State) -> bool:
    return state.base is not None and state.base.baseline is not None


def baseline_report(state: State) -> TestReport:
    """The test report of the untouched base; of a long suite, the part that was run."""
    run = state.base.baseline if state.base else None
    if run is None:
        return TestReport()
    report, more = report_from_run(state, run), run_for(state, "baseline", AFFECTED)
    if more is None:
        return report
    known = {case.id: case for case in (*report.cases, *report_from_run(state, more).cases)}
    return replace(report, cases=tuple(known.values()))


def is_long(state: State) -> bool:
    """Whether the suite takes so long that only the affected tests run after each version."""
    baseline = state.base.baseline if state.base else None
    if baseline is None or tests_command(state):
        return False
    return baseline.result.seconds > LONG_SUITE_SECONDS or is_endless(state)


def is_endless(state: State) -> bool:
    """Whether the suite exceeded its time limit on the base."""
    baseline = state.base.baseline if state.base else None
    return baseline is not None and not tests_command(state) and baseline.result.stopped_by in ("time", "cpu")


def suite_runs(state: State) -> list[PlannedRun]:
    """The runs of the suite: a long one runs as a whole only after the affected tests have passed."""
    if not is_long(state):
        return [WHOLE_SUITE]
    affected = run_for(state, "tests", AFFECTED)
    first = [PlannedRun(purpose="tests", about=AFFECTED)]
    if is_endless(state):
        again = affected is not None and bool(
            chosen_tests(state, PlannedRun(purpose="baseline", about=AFFECTED))
        )
        return [*first, *([PlannedRun(purpose="baseline", about=AFFECTED)] if again else [])]
    passed = affected is not None and bool(affected.only) and not tests_of(state).failed
    return [*first, *([WHOLE_SUITE] if passed else [])]


def tests_run(state: State) -> RunFinished | None:
    """The newest version's run of the suite, or of the part of it that was run."""
    return run_for(state, "tests") or run_for(state, "tests", AFFECTED)


def raw_tests_of(state: State) -> TestReport:
    """The newest version's test report, not compared with the base."""
    run = tests_run(state)
    return TestReport() if run is None else report_from_run(state, run)


def tests_of(state: State) -> TestReport:
    """The newest version's test report, compared with the base; empty if there was no run.

    Tests that failed on the base count as xfailed, tests that pass only sometimes as unstable.
    """
    report, failed = raw_tests_of(state), frozenset(baseline_report(state).failed)
    unstable = unstable_tests(state)
    if (failed | unstable).isdisjoint(report.failed):
        return report
    known: dict[str, Outcome] = {**dict.fromkeys(failed, "xfailed"), **dict.fromkeys(unstable, "unstable")}
    cases = [
        replace(case, outcome=known[case.id]) if case.outcome in FAILURES and case.id in known else case
        for case in report.cases
    ]
    return replace(report, cases=tuple(cases))


def report_from_run(state: State, run: RunFinished) -> TestReport:
    """The report of a run; without one, the exit code counts as the outcome of a single test."""
    if tests_command(state) and run.result.tests is None:
        return one_case(run.command, run.result.succeeded, complete=run.result.stopped_by is None)
    return run.result.report


def tests_command(state: State) -> str:
    """The team's or the project's test command; empty for pytest."""
    found = state.base.survey.tests if state.base else ""
    return state.team.tests or ("" if "pytest" in found else found)


def found_tests_of(state: State) -> TestReport | None:
    """The report of the original tests with the newest program; None if the team did not change the tests."""
    run = run_for(state, "tests as found")
    return None if run is None else report_from_run(state, run)


def tests_to_mend(state: State) -> tuple[str, ...]:
    """The tests that the goal names, if it asks only that they pass (`tests/test_a.py fails, fix it`)."""
    if state.base is None or not state.base.survey.tests or tests_command(state):
        return ()
    tests = tuple(dict.fromkeys(TEST_ID.findall(state.goal)))
    words = re.findall(r"[\w'-]+", TEST_ID.sub(" ", state.goal).lower())
    plain = MENDING_WORDS.issuperset(words) and all(is_test(test.partition("::")[0]) for test in tests)
    return tests if plain else ()


def mending_plan(tests: Iterable[str]) -> Plan:
    """A plan that asks for these tests to pass, made without a model; that nothing else breaks is always required."""
    items = [
        Requirement(id=f"P{number}", text=f"{test} passes", check=Mends(target=test))
        for number, test in enumerate(tests, start=1)
    ]
    return Plan(items=tuple(items))


def touches_tests(state: State) -> bool:
    """Whether the newest version changed a file that may affect the outcome of tests."""
    version = state.work.version
    return version is not None and any(
        map(belongs_to_tests, (*(file.path for file in version.files), *version.deleted))
    )


def newly_red(state: State, tree: Tree) -> tuple[str, ...]:
    """Tests that passed on the base and fail on the tree; empty if too many fail for chance to explain it."""
    if tree == "base":
        red = (*newly_red(state, "now"), *newly_red(state, "found"))
    else:
        report = (raw_tests_of(state) if tree == "now" else found_tests_of(state)) or TestReport()
        passed = frozenset(baseline_report(state).passed)
        red = tuple(test for test in report.failed if test in passed) if report.trustworthy else ()
    return tuple(dict.fromkeys(red)) if len(red) <= MAX_REPEATED_TESTS else ()


def open_repeats(state: State) -> list[PlannedRun]:
    """Runs that repeat newly red tests twice on each tree; none for a long suite that cannot run in parts."""
    baseline = state.base.baseline if state.base else None
    if baseline is None or (tests_command(state) and baseline.result.seconds > LONG_SUITE_SECONDS):
        return []
    return [
        PlannedRun(purpose="tests again", about=f"{tree} {number}")
        for tree in get_args(Tree)
        if newly_red(state, tree)
        for number in REPEATS
        if run_for(state, "tests again", f"{tree} {number}") is None
    ]


def unstable_tests(state: State) -> frozenset[str]:
    """Newly red tests that both passed and failed on the same tree."""
    return frozenset(
        test
        for tree in get_args(Tree)
        for test in newly_red(state, tree)
        if len({case == "passed" for case in repeated_outcomes(state, tree, test)}) > 1
    )


def repeated_outcomes(state: State, tree: Tree, test: str) -> list[Outcome]:
    """The outcomes of one test in all its runs on a tree."""
    return [
        case.outcome for report in repeated_reports(state, tree) for case in report.cases if case.id == test
    ]


def repeated_reports(state: State, tree: Tree) -> Iterator[TestReport]:
    first = {"now": raw_tests_of(state), "found": found_tests_of(state), "base": baseline_report(state)}
    again = (run_for(state, "tests again", f"{tree} {number}") for number in REPEATS)
    yield first[tree] or TestReport()
    yield from (report_from_run(state, run) for run in again if run is not None)


def new_tests(state: State) -> tuple[str, ...]:
    """Tests that pass now and that the base does not have; of a suite that has only an exit code, all of it."""
    run, passed = tests_run(state), raw_tests_of(state).passed
    if run is not None and run.result.tests is None:
        return passed if touches_tests(state) else ()
    known = {case.id for case in baseline_report(state).cases}
    return tuple(test for test in passed if test not in known)


def changed_tests(state: State) -> frozenset[str]:
    """Tests that pass now and do not without the change."""
    return (
        frozenset(raw_tests_of(state).passed)
        - frozenset(baseline_report(state).passed)
        - unchanged_by_version(state)
    )


def has_project(state: State) -> bool:
    """Whether the person's folder held something before."""
    return state.base is not None and state.base.survey.kind != "empty"


def changes_program(state: State) -> bool:
    """Whether the newest version has other program files than the person's folder had when the chat began."""
    found = [file for one in takewhile(lambda one: one.found, state.work.versions) for file in one.files]
    return any(
        run_command_prefix(file.path, state.team.languages) and not belongs_to_tests(file.path)
        for file in state.work.files
        if file not in found
    )


def needs_base_run(state: State) -> bool:
    """Whether new tests must run on the base's program too: those that pass there do not show the change."""
    return (
        (has_baseline(state) or (has_project(state) and changes_program(state)))
        and touches_tests(state)
        and bool(new_tests(state))
        and run_for(state, "tests on base") is None
    )


def unchanged_by_version(state: State) -> frozenset[str]:
    """New tests that pass on the base's program too."""
    run = run_for(state, "tests on base")
    return (
        frozenset(report_from_run(state, run).passed).intersection(new_tests(state)) if run else frozenset()
    )


def chosen_tests(state: State, planned: PlannedRun) -> tuple[str, ...]:
    """The tests that a run is limited to; empty if it runs all of them."""
    affected = run_for(state, "tests", AFFECTED)
    chosen = affected.only if affected and is_long(state) else ()
    match planned.purpose:
        case _ if tests_command(state):
            return ()
        case "tests again":
            return newly_red(state, next(tree for tree in get_args(Tree) if planned.about.startswith(tree)))
        case "tests on base":
            return files_of_tests(new_tests(state))
        case "tests as found" | "baseline":
            base = files_of_tests(case.id for case in baseline_report(state).cases)
            return tuple(one for one in chosen if one.partition("::")[0] in base)
        case "tests alone":
            return (files_of_tests(named_tests(state)) if has_baseline(state) else ()) or chosen
        case _:
            return ()


def named_tests(state: State) -> list[str]:
    """What the plan's requirements name as their tests."""
    return [item.check.target for item in state.plan.items if isinstance(item.check, TestsPass)]


def tests_are_evidence(state: State) -> bool:
    """Whether tests show a requirement. A project's own that only have to stay green need no control."""
    return not has_baseline(state) or touches_tests(state) or bool(named_tests(state))


def asked_tests(state: State) -> tuple[str, ...] | None:
    """The files of the tests that show a requirement, empty for all; None if no test does."""
    targets = [one.check.target for one in state.plan.items if isinstance(one.check, TestsPass | Mends)]
    if tests_command(state) or (not targets and has_baseline(state)):
        return None
    return files_of_tests(one for one in targets if ".py" in one)


def files_of_tests(tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(test.partition("::")[0] for test in tests))


def files_that_finish(state: State) -> tuple[str, ...]:
    """Files of a suite that timed out whose own tests all finished: they run if no test is affected."""
    cases = baseline_report(state).cases if is_endless(state) else ()
    waiting = files_of_tests(case.id for case in cases if case.outcome == "not run")
    return tuple(one for one in files_of_tests(case.id for case in cases) if one not in waiting)


def passed_before(state: State, run: RunFinished | None) -> list[str]:
    """Tests that passed on the base and that the run should include."""
    only = run.only if run else ()
    passed = baseline_report(state).passed
    return [test for test in passed if not only or any(covers(one, test) for one in only)]


def lost_tests(state: State) -> list[str]:
    """Tests that passed on the base and are no longer there."""
    now = {case.id for case in raw_tests_of(state).cases}
    return [test for test in passed_before(state, tests_run(state)) if test not in now]


def broken_tests(state: State) -> list[str]:
    """Original tests that passed on the base and fail now, except those that the plan names, which may change."""
    found = found_tests_of(state)
    if found is None:
        return []
    named = [item.check.target for item in state.plan.items if isinstance(item.check, TestsPass)]
    excused = {*found.passed, *unstable_tests(state)}
    before = passed_before(state, run_for(state, "tests as found"))
    lost = [test for test in before if test not in excused]
    return [test for test in lost if not any(covers(target, test) for target in named)]


def never_starts(state: State) -> bool:
    """Whether the project's tests ended before any of them, on the base and now: nothing can be compared."""
    runs = (state.base.baseline if state.base else None, tests_run(state))
    return all(run is not None and cannot_start(state, run) for run in runs)


def cannot_start(state: State, run: RunFinished) -> bool:
    result = run.result
    failed = result.exit_code not in (0, NO_TESTS) and not result.stopped_by
    return failed and not report_from_run(state, run).cases


def failure_line(result: RunResult) -> str:
    """The line of the output that names the error; else the last one."""
    lines = [line.strip() for line in f"{result.stdout}\n{result.stderr}".splitlines() if line.strip()]
    named = [line for line in lines if ERROR_NAME.match(line)]
    return (named or lines or [result.ending])[-1][:300]


def suite_notes(state: State) -> list[str]:
    """Notes about the project's tests for the final report."""
    run = tests_run(state)
    if not has_baseline(state) or run is None:
        return []
    if never_starts(state):
        why = f"{failure_line(run.result)}; {ENVIRONMENT_REMEDY}"
        return [f"the project's tests start neither before the change nor now ({why})"]
    known = set(baseline_report(state).failed)
    failed = [test for test in raw_tests_of(state).failed if test in known]
    same = unchanged_by_version(state)
    return [
        *(unstable_note(state, test) for test in sorted(unstable_tests(state))),
        *([f"failed before too: {list_tests(failed)}"] if failed else []),
        *([f"passes without the change too: {list_tests(sorted(same))}"] if same else []),
        *([part_note(state, run)] if run.only else []),
    ]


def part_note(state: State, run: RunFinished) -> str:
    """Say that only a part of the suite was run, and why."""
    cause = "did not end in its time" if is_endless(state) else "takes long"
    return f"only a part of the suite was run, as it {cause} on the base: {list_tests(run.only)}"


def unstable_note(state: State, test: str) -> str:
    """Say how often the test passed on each tree: `passed 1 of 3 times now, 3 of 3 on the base`."""
    words = {"now": "now", "found": "as it was found", "base": "on the base"}
    seen = {tree: repeated_outcomes(state, tree, test) for tree in get_args(Tree)}
    parts = [
        f"{found.count('passed')} of {pluralize(len(found), 'time')} {words[tree]}"
        for tree, found in seen.items()
        if len(found) > 1
    ]
    return f"{test} is unstable and counts for nothing: it passed {join_words(parts)}"


def list_tests(tests: Iterable[str]) -> str:
    found = list(tests)
    more = [pluralize(len(found) - MAX_LISTED_TESTS, "other test")] if len(found) > MAX_LISTED_TESTS else []
    return join_words([*found[:MAX_LISTED_TESTS], *more])
