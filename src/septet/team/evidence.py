"""Done is decided by evidence about the newest version, not by what a model claims."""

from septet.domain.counts import counted
from septet.domain.events import PersonSpoke
from septet.domain.plans import CommandSucceeds, Judged, Plan, Requirement, Serves, Wish
from septet.domain.pytest_report import TestReport, parse_report
from septet.domain.state import State
from septet.domain.values import Value


class Line(Value):
    """A row of the final report: requirement, check, what shows it, on which version."""

    item: Requirement
    met: bool
    detail: str


def run_of(state: State, purpose: str) -> str | None:
    """The id of the newest version's run for that purpose."""
    return next((run.id for run in state.runs if run.purpose == purpose), None)


def purposes(state: State) -> list[str]:
    """What has to be run for the newest version: the program, its tests, the checks that are runs of their own."""
    plan = state.plan or Plan(items=())
    commands = [f"check {item.id}" for item in plan.items if isinstance(item.check, CommandSucceeds | Serves)]
    return [*(["run"] if plan.run else []), "tests", *commands]


def examined(state: State) -> bool:
    """Everything that can be checked without a judgement has been."""
    items = state.plan.items if state.plan else ()
    return all(run_of(state, purpose) for purpose in purposes(state)) and all(
        item.id in state.evidence for item in items if not isinstance(item.check, Judged)
    )


def tests_of(state: State) -> TestReport:
    """The newest version's test report; empty where there was none or it was cut short.

    Of tests that are not pytest's, only the exit code is known: they are one test.
    """
    run = next((run for run in state.runs if run.purpose == "tests"), None)
    if run is None:
        return TestReport()
    if state.team.tests:
        name = (run.command,)
        return TestReport(passed=name) if run.result.succeeded else TestReport(failed=name)
    return parse_report(run.result.stdout)


def vacuous(state: State) -> bool:
    """The tests pass without the program: they prove nothing."""
    return any(run.purpose == "tests alone" and run.result.succeeded for run in state.runs)


def accepted(state: State) -> bool:
    return state.review is not None and state.review.verdict == "accept"


def report(state: State) -> list[Line]:
    """Requirement → check → evidence, for the newest version."""
    items = state.plan.items if state.plan else ()
    return [*(line(state, item) for item in items), *(wish_line(state, wish) for wish in state.wishes)]


def wish_line(state: State, wish: Wish) -> Line:
    """A wish is met when the reviewer accepts what was written for it."""
    item = Requirement(id=wish.id, text=" ".join(wish.text.split()))
    return line(state, item) if wish.version else Line(item=item, met=False, detail="no version since")


def line(state: State, item: Requirement) -> Line:
    if isinstance(item.check, Judged):
        return Line(
            item=item,
            met=accepted(state),
            detail="accepted by the reviewer" if accepted(state) else "not accepted",
        )
    found = state.evidence.get(item.id)
    if found is None:
        return Line(item=item, met=False, detail="not checked")
    return Line(item=item, met=found.passed, detail=found.detail)


def shortcomings(state: State) -> list[str]:
    """Why the newest version is not done, as far as evidence goes; empty when it is green."""
    if state.version is None:
        return ["no version exists"]
    return [*run_troubles(state), *test_troubles(state), *unmet(state)]


def run_troubles(state: State) -> list[str]:
    runs = [run.result for run in state.runs if run.purpose == "run" and not run.result.succeeded]
    return [
        f"the program was stopped by its {result.stopped_by} limit"
        if result.stopped_by
        else f"the program exits with {result.exit_code}"
        for result in runs
    ]


def test_troubles(state: State) -> list[str]:
    tests = tests_of(state)
    if not tests.passed and not tests.failed:
        return ["no test ran"]
    if tests.failed:
        failed = len(tests.failed)
        total = counted(failed + len(tests.passed), "test")
        return [f"{failed} of {total} {'fails' if failed == 1 else 'fail'}"]
    if any(run.purpose == "tests" and not run.result.succeeded for run in state.runs):
        return ["the test run did not end well"]
    return ["the tests pass without the program, so they prove nothing"] if vacuous(state) else []


def unmet(state: State) -> list[str]:
    """Judgements come last, but a wish that no version was written for cannot even be judged."""
    untried = {wish.id for wish in state.wishes if not wish.version}
    lines = [
        line
        for line in report(state)
        if not line.met and (line.item.id in untried or not isinstance(line.item.check, Judged))
    ]
    return [f"{line.item.id} is not met ({line.detail})" for line in lines]


def done(state: State) -> bool:
    """All items met, tests pass, the run exits 0 and the reviewer accepts, all for the newest version.

    What the person has said since comes first.
    """
    green = state.approved and examined(state) and accepted(state) and not shortcomings(state)
    return green and not state.remarks


def heard(state: State) -> tuple[PersonSpoke, ...]:
    """The remarks that a member knows in this turn."""
    return state.remarks[: state.turn.heard] if state.turn else ()
