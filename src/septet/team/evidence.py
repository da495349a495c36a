"""Decides by evidence whether the newest version is done: which runs are needed, and what they prove. Pure."""

from typing import Literal

from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.events import PersonSpoke, RunFinished
from septet.domain.files import is_test
from septet.domain.plans import (
    Author,
    Check,
    CommandSucceeds,
    ExampleHolds,
    Judged,
    Mends,
    Plan,
    Requirement,
    Serves,
    TestsPass,
    Wish,
    check_text,
    is_held,
)
from septet.domain.pytest_report import TestReport
from septet.domain.runs import HOLLOW, PlannedRun, RunResult
from septet.domain.state import State
from septet.team.baseline import (
    baseline_report,
    broken_tests,
    changed_tests,
    changes_program,
    found_tests_of,
    has_baseline,
    has_project,
    lost_tests,
    named_tests,
    never_starts,
    raw_tests_of,
    run_for,
    suite_runs,
    tests_are_evidence,
    tests_command,
    tests_of,
    tests_run,
    touches_tests,
)
from septet.team.controls import MUTANTS
from septet.team.witnesses import open_special_cases, special_case_text

ControlOutcome = Literal["pass", "fail", "unknown"]

NOTHING_CHANGED = "every check holds without the change too, so nothing shows it: a test must fail without it"
FOREIGN_REMEDY = "install it with pip install -e, or name its folder as pythonpath in pytest's settings"


class EvidenceLine(Value):
    """A row of the final report: a requirement, whether it is met, and the evidence."""

    item: Requirement
    is_met: bool
    detail: str
    author: Author = "planner"
    """Who wrote the check, or the tests that it runs."""
    own_tests: bool = False
    """Whether only the coder's own tests check the requirement."""


def planned_runs(state: State) -> list[PlannedRun]:
    """All runs that the newest version needs: the program, its tests, and checks that run something."""
    plan = state.plan.current or Plan(items=())
    commands = [
        item.id for item in plan.items if isinstance(item.check, CommandSucceeds | ExampleHolds | Serves)
    ]
    first, *whole = suite_runs(state)
    return [
        *([PlannedRun(purpose="run")] if plan.run else []),
        first,
        *(PlannedRun(purpose="check", about=item) for item in commands),
        *whole,
    ]


def open_runs(state: State) -> list[PlannedRun]:
    """The planned runs that have not been made yet."""
    return [one for one in planned_runs(state) if run_for(state, one.purpose, one.about) is None]


def is_examined(state: State) -> bool:
    """Whether every check that needs no judgement has evidence."""
    items = state.plan.items
    return not open_runs(state) and all(
        item.id in state.work.evidence for item in items if not isinstance(item.check, Judged)
    )


def needs_found_tests(state: State) -> bool:
    """Whether the original tests must be run, because the team changed tests: its own may pass for that reason."""
    if not has_baseline(state) or test_problems(state):
        return False
    return touches_tests(state) and run_for(state, "tests as found") is None


def tests_outcome(result: RunResult) -> ControlOutcome:
    """The outcome of tests without a working program; "unknown" if the run was stopped."""
    if result.tests is None:
        return "unknown" if result.stopped_by else "pass" if result.succeeded else "fail"
    if result.tests.failed:
        return "fail"
    if not result.tests.complete:
        return "unknown"
    return "pass" if result.tests.passed else "fail"


def control_of_tests(state: State) -> RunFinished | None:
    """The run of the newest version's tests on a hollow program, or without the program."""
    return run_for(state, "tests alone", HOLLOW) or run_for(state, "tests alone")


def control_result(run: RunFinished) -> ControlOutcome:
    """The outcome of a control run. On a hollow program a stopped run counts as failed: a loop that waits for what a
    function returns may never end.
    """
    hollow = bool(run.about)
    return "fail" if hollow and not run.result.succeeded else tests_outcome(run.result)


def doubts(state: State) -> list[str]:
    """Reasons why the passing tests prove nothing."""
    if (
        state.work.version is not None
        and not state.existing
        and all(is_test(one.path) for one in state.work.version.files)
    ):
        return ["there are tests and no program, so they prove nothing"]
    run = control_of_tests(state)
    found = control_result(run) if run else "fail"
    if found == "unknown" and run is not None:
        return [f"whether the tests fail without the program is unknown: {unknown_reason(run.result)}"]
    if found != "pass" or run is None:
        return []
    without = "with functions that do nothing" if run.about == HOLLOW else "without the program"
    return [f"the tests pass {without}, so they prove nothing"]


def control_doubts(state: State, target: str) -> list[str]:
    """Reasons why the tests at the target prove nothing, even if other tests do."""
    passed = surviving_controls(state, target)
    if HOLLOW in passed:
        return ["they pass with functions that do nothing, so they prove nothing"]
    mutants = tried_mutants(state)
    if mutants and mutants <= passed:
        return ["they pass whatever the program's functions return or compute, so they prove nothing"]
    return []


def surviving_controls(state: State, target: str) -> set[str]:
    """The controls on which the tests at the target still passed."""
    controls = [run for run in state.work.runs if run.purpose == "tests alone" and run.about]
    return {run.about for run in controls if passes_as_before(state, run, target)}


def passes_as_before(state: State, run: RunFinished, target: str) -> bool:
    tests = run.result.tests
    if tests is None or tests_command(state):
        return run.result.succeeded
    cases = tests.about(target) if target else tests
    return bool(cases.cases) and len(cases.passed) == len(cases.cases)


def tried_mutants(state: State) -> set[str]:
    return {run.about for run in state.work.runs if run.purpose == "tests alone" and run.about in MUTANTS}


def test_targets(state: State) -> list[str]:
    """The tests that the plan's requirements name; "" for all tests if none does."""
    return named_tests(state) or [""]


def needs_mutant(state: State) -> bool:
    """Whether to try another mutant: the tests of some requirement passed on every mutant so far."""
    tried = tried_mutants(state)
    return tests_are_evidence(state) and any(
        tried <= surviving_controls(state, target) for target in test_targets(state)
    )


def unknown_reason(result: RunResult) -> str:
    if result.stopped_by:
        return f"the run was {result.ending}"
    return "the run ended before all outcomes were reported"


def incomplete_reason(tests: TestReport, run: RunFinished) -> str:
    """Why a test report is no evidence; empty if it is."""
    if not tests.complete:
        return f"unknown, {unknown_reason(run.result)}"
    return f"unknown, {tests.hooks[0]} decides how tests are run" if tests.hooks else ""


def foreign_text(tests: TestReport) -> str:
    """Say which foreign package the tests imported instead of the workspace's, and how to fix it."""
    return f"{tests.foreign[0]} and not from the workspace ({FOREIGN_REMEDY})"


def is_accepted(state: State) -> bool:
    return state.work.review is not None and state.work.review.verdict == "accept"


def evidence_report(state: State) -> list[EvidenceLine]:
    """One line per requirement and wish, with the evidence for the newest version."""
    items = state.plan.items
    return [
        *(evidence_line(state, item) for item in items),
        *(wish_line(state, wish) for wish in state.plan.wishes),
    ]


def result_lines(state: State) -> list[str]:
    """The lines of the report for a prompt. What nobody has judged yet is open, and not failed."""
    return [f"- {line.item.id} {result_text(state, line)}" for line in evidence_report(state)]


def result_text(state: State, line: EvidenceLine) -> str:
    if line.is_met:
        return f"met: {line.detail}"
    if state.work.review is not None or not is_judged(state, line.item):
        return f"NOT met: {line.detail}"
    if line.detail == NO_VERSION:
        return f"open: {NO_VERSION}"
    found = state.work.evidence.get(line.item.id)
    return f"open: {f'{found.detail}; ' if found else ''}it is judged in the review"


def wish_line(state: State, wish: Wish) -> EvidenceLine:
    """A wish is met when the reviewer accepts what was written for it."""
    item = Requirement(id=wish.id, text=" ".join(wish.text.split()))
    return (
        evidence_line(state, item)
        if wish.version
        else EvidenceLine(item=item, is_met=False, detail=NO_VERSION)
    )


NO_VERSION = "no version since"


def evidence_line(state: State, item: Requirement) -> EvidenceLine:
    author = author_of(state, item.check)
    if isinstance(item.check, Judged):
        detail = "accepted by the reviewer" if is_accepted(state) else "not accepted"
        return EvidenceLine(item=item, is_met=is_accepted(state), detail=detail, author=author)
    found = state.work.evidence.get(item.id)
    if found is None:
        return EvidenceLine(item=item, is_met=False, detail="not checked", author=author)
    own = rests_on_own_tests(state, item)
    if is_judged(state, item):
        accepted = is_accepted(state)
        detail = f"{found.detail}; {'accepted by the reviewer' if accepted else 'not accepted'}"
        return EvidenceLine(item=item, is_met=accepted, detail=detail, author="reviewer")
    special = open_special_cases(state, item)
    met = found.passed and not (own and state.team.strict) and not special
    detail = found.detail
    if special:
        detail = f"{detail}; {special_case_text(special[0])}"
    elif met != found.passed:
        detail = f"{found.detail}; nothing but the coder's own tests shows it"
    return EvidenceLine(item=item, is_met=met, detail=detail, author=author, own_tests=own)


def earlier_outcome(state: State, item: str) -> bool | None:
    """Whether the version before the newest one met a requirement, or an older one did; None if nobody knows."""
    if item in state.work.failed_before:
        return False
    return True if item in state.plan.met_before else None


def author_of(state: State, check: Check) -> Author:
    """The author of the check or, if it runs tests, of the tests."""
    if isinstance(check, Judged):
        return check.by
    if isinstance(check, Mends):
        return "repository"
    written = state.plan.authors.get(check_text(check), "planner")
    named = tested_target(check)
    return written if named is None else tests_author(state, named)


def tested_target(check: Check) -> str | None:
    """The tests that a check stands for: a file or one of its tests, or "" for all; None if it is no check of tests."""
    match check:
        case TestsPass(target=target) | Mends(target=target):
            return target
        case CommandSucceeds(command=command):
            return run_tests(command)
        case _:
            return None


def run_tests(command: str) -> str | None:
    """The tests that a command runs: a file, or "" for all; None if it runs the program."""
    words = command.split()
    files = [word for word in words if is_test(word.partition("::")[0]) and "." in word]
    if files:
        return files[0]
    return "" if {"pytest", "unittest"}.intersection(words) else None


def tests_author(state: State, target: str) -> Author:
    """The author of the tests: the repository if what it had shows it, the person if edited by hand, else the coder."""
    written = {file.path: file.sha256 for file in state.work.files if covers_file(target, file.path)}
    if (
        state.base is not None
        and state.base.survey.kind != "empty"
        and (not written or found_tests_show(state, target))
    ):
        return "repository"
    by_hand = [version for version in state.work.versions if version.found]
    theirs = {(file.path, file.sha256) for version in by_hand for file in version.files}
    return "person" if written and written.items() <= theirs else "coder"


def found_tests_show(state: State, target: str) -> bool:
    """Whether the tests pass as they were found, and the coder added none to them or they failed on the base."""
    report = found_tests_of(state)
    found = report.about(target) if report is not None else TestReport()
    if not found.cases or found.failed:
        return False
    known = {case.id for case in found.cases}
    added = {case.id for case in raw_tests_of(state).about(target).cases} - known
    return not added or not known <= set(baseline_report(state).passed)


def covers_file(target: str, path: str) -> bool:
    """Whether the file has tests at the target; an empty target means all tests."""
    where = target.partition("::")[0].rstrip("/")
    return is_test(path) and (where in ("", ".", path) or path.startswith(f"{where}/"))


def rests_on_own_tests(state: State, item: Requirement) -> bool:
    """Whether only the coder's own tests check the requirement, and no check of another author does."""
    checks = [one.check for one in state.plan.items if one.text == item.text]
    return all(author_of(state, one) == "coder" for one in checks)


def shortcomings(state: State) -> list[str]:
    """Reasons from evidence why the newest version is not done; empty if it is green."""
    if state.work.version is None:
        return ["no version exists"]
    found = [*run_problems(state), *test_problems(state), *unmet_requirements(state)]
    return found or change_problems(state)


def other_shortcomings(state: State) -> list[str]:
    """The reasons that no requirement's own line tells."""
    return [*run_problems(state), *test_problems(state)] or (
        change_problems(state) if not unmet_requirements(state) else []
    )


def change_problems(state: State) -> list[str]:
    """A change of a program that no check notices is not shown, however many hold."""
    return [NOTHING_CHANGED] if is_unnoticed(state) and not judged_items(state) else []


def is_only_judged(state: State) -> bool:
    """Whether nothing but a judgement says that the work is done: that is a claim, not a proof."""
    judged = judged_items(state)
    return bool(judged) and (len(judged) == len(state.plan.items) or is_unnoticed(state))


def judged_items(state: State) -> list[Requirement]:
    """The requirements that a judgement decides: by their check, or because the check shows no more than a text."""
    return [item for item in state.plan.items if is_judged(state, item)]


def is_judged(state: State, item: Requirement) -> bool:
    found = state.work.evidence.get(item.id)
    shows_text = found is not None and found.passed and found.judged
    return isinstance(item.check, Judged) or shows_text


def is_unnoticed(state: State) -> bool:
    """Whether every check of a machine holds without the version's changes too."""
    items = [item for item in state.plan.items if not is_judged(state, item)]
    evidence = [state.work.evidence.get(item.id) for item in items]
    held = all(one is not None and one.held_before for one in evidence)
    return held and needs_change_shown(state)


def needs_change_shown(state: State) -> bool:
    """Whether a check still has to fail without the version's changes. Who writes checks by hand knows what they are
    for, and a version without a program has nothing else to show than its files.
    """
    if not has_project(state) or not state.plan.items or "person" in state.plan.authors.values():
        return False
    own_tests = bool(changed_tests(state)) and not state.team.strict
    return changes_program(state) and not own_tests


def run_problems(state: State) -> list[str]:
    runs = [run.result for run in state.work.runs if run.purpose == "run" and not run.result.succeeded]
    return [
        f"the program was stopped by its {result.stopped_by} limit"
        if result.stopped_by
        else f"the program exits with {result.exit_code}"
        for result in runs
    ]


def test_problems(state: State) -> list[str]:
    tests, run = tests_of(state), tests_run(state)
    if tests.foreign:
        return [f"the tests prove nothing: {foreign_text(tests)}"]
    if tests.failed:
        failed = len(tests.failed)
        total = pluralize(len(tests.cases), "test")
        return [f"{failed} of {total} {'fails' if failed == 1 else 'fail'}"]
    absent = never_starts(state)
    if run is not None and not absent and (why := incomplete_reason(tests, run)):
        return [f"what became of the tests is {why}"]
    if worse := baseline_problems(state):
        return worse
    if absent or (not tests.cases and has_examples(state)):
        return []
    if not tests.passed:
        return [f"no test passed ({tests.counts})" if tests.cases else "no test ran"]
    if run is not None and not run.result.succeeded and not raw_tests_of(state).failed:
        return ["the test run did not end well"]
    return doubts(state)


def baseline_problems(state: State) -> list[str]:
    """Problems with tests that passed on the base."""
    if lost := lost_tests(state):
        return [
            f"{pluralize(len(lost), 'test')} that passed before {'is' if len(lost) == 1 else 'are'} gone ({lost[0]})"
        ]
    if broken := broken_tests(state):
        words = "fails as it was" if len(broken) == 1 else "fail as they were"
        return [f"{pluralize(len(broken), 'test')} that passed before {words} found ({broken[0]})"]
    return []


def has_examples(state: State) -> bool:
    """Whether the plan has examples as checks, or holds a check back: then tests by the coder are not required."""
    checks = [item.check for item in state.plan.items]
    return any(isinstance(one, ExampleHolds) or is_held(one) for one in checks) and not any(
        isinstance(one, TestsPass | Mends) for one in checks
    )


def unmet_requirements(state: State) -> list[str]:
    """Unmet requirements without those that the reviewer judges, but with wishes that have no version yet."""
    untried = {wish.id for wish in state.plan.wishes if not wish.version}
    lines = [
        line
        for line in evidence_report(state)
        if not line.is_met and (line.item.id in untried or not is_judged(state, line.item))
    ]
    return [f"{line.item.id} is not met ({line.detail})" for line in lines]


def regressions(state: State) -> list[EvidenceLine]:
    """Requirements that an earlier version met and the newest does not."""
    failed = {item for item, one in state.work.evidence.items() if not one.passed}
    return [one for one in evidence_report(state) if one.item.id in failed & state.plan.met_before.keys()]


def is_done(state: State) -> bool:
    """Whether all requirements are met, tests pass, the run exits with 0 and the reviewer accepts the newest version.

    Not done if the person has sent a message since.
    """
    green = state.plan.approved and is_examined(state) and is_accepted(state) and not shortcomings(state)
    return green and not state.talk.remarks


def remarks_in_turn(state: State) -> tuple[PersonSpoke, ...]:
    """The person's remarks before this turn began."""
    return state.talk.remarks[: state.floor.turn.remarks_at_opening] if state.floor.turn else ()
