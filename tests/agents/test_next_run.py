"""What the runner runs next, and what it leaves out: decided by the log alone."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from team.states import GREEN, PLAN, STARTED, chat, planned, ran, version

from septet.agents.runner import (
    needs_doubt,
    needs_special_cases,
    next_run,
    open_base_checks,
    open_controls,
    waits,
    went_well,
)
from septet.domain.events import (
    BaseSurveyed,
    ChatStarted,
    Event,
    PackagesWanted,
    PlanApproved,
    PlanProposed,
    RunFinished,
    VersionWritten,
)
from septet.domain.packages import MissingPackages
from septet.domain.plans import (
    Check,
    CommandSucceeds,
    ExampleHolds,
    FileExists,
    Plan,
    Requirement,
    Serves,
    ShowsWindow,
    plan_digest,
)
from septet.domain.runs import ControlName, PlannedRun, Purpose, RunResult
from septet.domain.state import State

HOLLOW_ONLY: Sequence[ControlName] = ("hollow",)
BASE = BaseSurveyed(kind="folder", root="/w", manifest="m", tests="")


def written() -> VersionWritten:
    event = version(1, "a")[-1]
    assert isinstance(event, VersionWritten)
    return event


def run(purpose: Purpose, about: str = "", *, code: int = 0, stdout: str = "") -> RunFinished:
    result = RunResult(exit_code=code, stdout=stdout)
    return RunFinished(
        id=f"{purpose} {about}", purpose=purpose, about=about, command="c", tree=written().tree, result=result
    )


def after(*runs: Event, checks: Sequence[Check] = (), base: bool = False, files: bool = True) -> State:
    """A version of the plan's program, or of one with these checks, after these runs."""
    items = tuple(
        Requirement(id=f"C{number}", text="x", check=check) for number, check in enumerate(checks, start=1)
    )
    plan = Plan(items=items) if checks else PLAN
    events: list[Event] = [
        STARTED,
        *([BASE] if base else []),
        PlanProposed(plan=plan),
        PlanApproved(plan=plan_digest(plan)),
    ]
    return chat([*events, *([written()] if files else []), *runs])


RUN = run("run")
TESTED = run("tests", stdout=GREEN)
CHECKED = run("check", "P2", stdout="5\n")


@pytest.mark.parametrize(
    ("runs", "controls", "following"),
    [
        ([], HOLLOW_ONLY, ("run", "")),
        ([RUN], HOLLOW_ONLY, ("tests", "")),
        ([RUN, TESTED], HOLLOW_ONLY, ("check", "P2")),
        ([RUN, TESTED, CHECKED], HOLLOW_ONLY, ("tests alone", "hollow")),
        ([RUN, TESTED, CHECKED], [], ("tests alone", "")),
        ([RUN, TESTED, CHECKED, run("tests alone", "hollow", code=1)], HOLLOW_ONLY, ("hollow check", "P2")),
        ([RUN, run("tests", code=1), CHECKED], HOLLOW_ONLY, ("hollow check", "P2")),
        ([RUN, run("tests", code=1), replace(CHECKED, result=RunResult(exit_code=1))], HOLLOW_ONLY, None),
    ],
)
def test_first_comes_what_the_plan_needs_and_then_controls_of_what_passed(
    runs: list[Event], controls: Sequence[ControlName], following: tuple[str, str] | None
) -> None:
    planned_run = next_run(after(*runs), controls)
    assert (planned_run and (planned_run.purpose, planned_run.about)) == following


def test_nothing_is_run_twice() -> None:
    done = [*planned(), *version(1, "a"), *ran(1, "a", green=True)]
    assert next_run(chat([*done, run("hollow check", "P2", code=1)]), []) is None


@pytest.mark.parametrize(
    ("check", "result", "base", "controlled"),
    [
        (CommandSucceeds(command="c", prints="5"), 0, False, True),
        (CommandSucceeds(command="c", prints="5"), 1, False, False),
        (CommandSucceeds(command="c", prints="5"), None, False, False),
        (ExampleHolds(call="f(1)", value="2"), 0, False, True),
        (Serves(path="/", prints="x"), 0, False, False),
        (CommandSucceeds(command="c", prints="5"), 0, True, True),
    ],
)
def test_commands_and_examples_that_passed_are_run_without_the_program(
    check: Check, result: int | None, base: bool, controlled: bool
) -> None:
    ran_check = [] if result is None else [run("check", "C1", code=result)]
    state = after(*ran_check, checks=[check], base=base)
    assert went_well(state, "C1") is (result == 0)
    assert open_controls(state) == ([PlannedRun(purpose="hollow check", about="C1")] if controlled else [])
    assert open_controls(after(*ran_check, run("hollow check", "C1"), checks=[check], base=base)) == []


def test_an_unchanged_base_has_no_controls() -> None:
    check = CommandSucceeds(command="c", prints="5")
    nothing = VersionWritten(number=1, files=(), tree="")
    checked = replace(run("check", "C1"), tree="")
    items = (Requirement(id="C1", text="x", check=check),)
    events = [STARTED, PlanProposed(plan=Plan(items=items)), nothing, checked]
    assert open_controls(chat([events[0], BASE, *events[1:]])) == []
    assert open_controls(chat(events)) == [PlannedRun(purpose="hollow check", about="C1")]


COMMAND = CommandSucceeds(command="python add.py 2", prints="5")


@pytest.mark.parametrize(
    ("checks", "base", "compared"),
    [
        ([COMMAND], True, ["C1"]),
        ([COMMAND], False, []),
        ([COMMAND, Serves(path="/", prints="x")], True, ["C1", "C2"]),
        ([COMMAND, ShowsWindow()], True, []),
        ([FileExists(path="x")], True, []),
    ],
)
def test_over_a_project_what_passed_is_compared_with_the_base(
    checks: list[Check], base: bool, compared: list[str]
) -> None:
    runs = [run("check", f"C{number}", stdout="5\n") for number in range(1, len(checks) + 1)]
    found = open_base_checks(after(*runs, checks=checks, base=base))
    assert found == [PlannedRun(purpose="check on base", about=one) for one in compared]


def test_a_check_that_fails_on_the_base_shows_the_change_and_the_others_need_not_be_compared() -> None:
    runs = [run("check", f"C{number}", stdout="5\n") for number in (1, 2)]
    checks = [COMMAND, replace(COMMAND, command="python add.py 3")]
    second = [PlannedRun(purpose="check on base", about="C2")]
    held = run("check on base", "C1", stdout="5\n")
    assert open_base_checks(after(*runs, held, checks=checks, base=True)) == second
    fails = run("check on base", "C1", code=1)
    assert open_base_checks(after(*runs, fails, checks=checks, base=True)) == []


@pytest.mark.parametrize(
    ("runs", "needed"),
    [
        ([TESTED], True),
        ([run("tests", code=1)], False),
        ([], False),
        ([TESTED, run("tests alone", code=1)], False),
    ],
)
def test_tests_that_passed_are_doubted_until_they_ran_without_the_program(
    runs: list[Event], needed: bool
) -> None:
    assert needs_doubt(after(*runs)) is needed


def test_where_there_are_tests_and_no_program_nothing_can_be_taken_away() -> None:
    test = replace(written(), files=written().files[1:])
    assert not needs_doubt(chat([STARTED, PlanProposed(plan=PLAN), test, TESTED]))


EXAMPLE = ExampleHolds(call="add(2, 3)", value="5")
ALONE = run("tests alone", "hollow", code=1)


@pytest.mark.parametrize(
    ("checks", "runs", "needed"),
    [
        ([], [TESTED, ALONE], True),
        ([], [TESTED, ALONE, run("special cases")], False),
        ([], [run("tests", code=1)], False),
        ([EXAMPLE], [run("check", "C1")], True),
        ([EXAMPLE], [run("check", "C1", code=1)], False),
        ([replace(EXAMPLE, held=True)], [run("check", "C1")], False),
        ([EXAMPLE, replace(EXAMPLE, call="add(9, 9)", held=True)], [run("check", "C1")], False),
        ([EXAMPLE, replace(EXAMPLE, call="sub(9, 9)", held=True)], [run("check", "C1")], True),
    ],
)
def test_special_cases_are_looked_for_once_what_the_coder_knows_has_passed(
    checks: list[Check], runs: list[Event], needed: bool
) -> None:
    assert needs_special_cases(after(*runs, checks=checks)) is needed


@pytest.mark.parametrize(("packages", "waiting"), [("ask", True), ("auto", False), ("off", False)])
def test_runs_wait_for_the_persons_word_on_packages_if_the_team_asks(packages: str, waiting: bool) -> None:
    started = ChatStarted(goal="g", team=replace(STARTED.team, packages=packages), workspace="/w")
    wanted = PackagesWanted(missing=MissingPackages(distributions=("numpy",)))
    assert waits(chat([started, wanted])) is waiting
    assert not waits(chat([started]))
