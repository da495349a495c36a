"""Where a chat stands, in words that a person who was away understands."""

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, ran, reviewed, said, version

from septet.chat.results import (
    ProofCost,
    awaited_question,
    is_delivered,
    member_spending_lines,
    report_table,
    result_of,
    run_outcome,
    run_title,
    spending_text,
    status,
    summary,
    time_text,
    turn_spending_text,
    wrapped_cell,
)
from septet.domain.events import (
    AnswerGiven,
    BaseSurveyed,
    ChatEnded,
    ChatHalted,
    Delivered,
    Event,
    ModelAnswered,
    PlanApproved,
    PlanProposed,
    RunFinished,
    TurnOpened,
)
from septet.domain.messages import Answer, Usage
from septet.domain.plans import CommandSucceeds, ExampleHolds, Requirement, plan_digest
from septet.domain.pytest_report import TestCase, TestReport
from septet.domain.runs import RunResult
from septet.domain.teams import Allowance, Budget, TeamSpec
from septet.team.caveats import reservations


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
    assert result_of(own).reservations == (
        "only the coder's own tests show P1",
        "the coder knew every example of P2",
    )

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
            ExampleHolds(call=f"add.add({n + 1}, 4)", value=f"{n + 5}", held=one)
            for n, one in enumerate(held)
        ]
        items = [Requirement(id=f"P{n}", text="sums", check=check) for n, check in enumerate(checks, 1)]
        return reservations(chat([STARTED, PlanProposed(plan=replace(PLAN, items=tuple(items)))]))

    assert told(False) == ["the coder knew every example of P1"]
    assert told(False, False) == ["the coder knew every example of P1 and P2"]
    assert told(False, True) == []


USED = Usage(prompt=300, completion=40, cached=120)
ANSWER = ModelAnswered(role="coder", answer=Answer(text="x", usage=USED, cost=0.25, seconds=12.6))


def spent(team: TeamSpec = STARTED.team, answer: ModelAnswered = ANSWER) -> list[Event]:
    return [replace(STARTED, team=team), TurnOpened(speaker="coder"), answer]


def bounded(own: Allowance) -> TeamSpec:
    """The team, with the same bounds for all and for its coder alone."""
    team = STARTED.team
    members = tuple(replace(one, budget=own) if one.role == "coder" else one for one in team.members)
    whole = Budget(tokens=own.tokens, cost=own.cost, seconds=own.seconds)
    return replace(team, members=members, budget=whole)


def test_what_was_used_is_told_with_its_bounds_if_there_are_any() -> None:
    assert spending_text(chat([STARTED])) == "0 answers"
    assert turn_spending_text(chat([STARTED])) == ""
    assert time_text(chat([STARTED]), 3.4) == "3 s"
    free = chat(spent())
    assert spending_text(free) == "1 answer · 300 + 40 tokens (120 cached) · $0.2500"
    assert member_spending_lines(free) == ["  coder  1 answer · 300 + 40 tokens (120 cached) · $0.2500"]
    assert turn_spending_text(free) == ""
    assert time_text(free) == "13 s"
    bound = chat(spent(bounded(Allowance(tokens=1000, cost=2.5, seconds=90.0))))
    told = "1 answer · 300 + 40 tokens (120 cached) of 1000 · $0.2500 of 2.5"
    assert spending_text(bound) == told
    assert member_spending_lines(bound) == [f"  coder  {told}"]
    assert turn_spending_text(bound) == "coder 340/1000 tokens $0.2500/2.5 13/90 s"
    assert time_text(bound, 2.0) == "15/90 s"


def test_an_estimate_is_said_to_be_one_and_members_stand_in_one_column() -> None:
    usage = Usage(prompt=3, completion=4, estimated=True)
    more = ModelAnswered(role="reviewer", answer=Answer(text="x", usage=usage, cost=0.0))
    silent = ModelAnswered(role="planner", answer=Answer(text="x"))
    state = chat([*spent(), more, silent])
    assert member_spending_lines(state) == [
        "  coder     1 answer · 300 + 40 tokens (120 cached) · $0.2500",
        "  reviewer  1 answer · about 3 + 4 tokens · $0.0000",
    ]


@pytest.mark.parametrize(
    ("team", "asked"),
    [
        (STARTED.team, True),
        (replace(STARTED.team, approve="auto"), False),
        (replace(STARTED.team, approve="auto", stepwise=True), True),
        (replace(STARTED.team, approve="auto", consult=True), True),
    ],
)
def test_a_team_that_agrees_by_itself_waits_for_a_person_only_where_one_asked_to_look(
    team: TeamSpec, asked: bool
) -> None:
    events = [*planned(), *version(1, "a"), TurnOpened(speaker="proxy")]
    waiting = chat([replace(STARTED, team=team), *events[1:]])
    assert (awaited_question(waiting) is not None) is asked


def test_a_plan_is_agreed_to_by_a_team_that_agrees_by_itself_even_where_reviews_are_asked_about() -> None:
    begun = replace(STARTED, team=replace(STARTED.team, approve="auto", consult=True))
    proposed = chat([begun, PlanProposed(plan=PLAN), TurnOpened(speaker="proxy")])
    assert awaited_question(proposed) is None
    asking = chat([STARTED, PlanProposed(plan=PLAN), TurnOpened(speaker="proxy")])
    assert awaited_question(asking) is not None
    assert awaited_question(chat([*planned(), TurnOpened(speaker="coder")])) is None


def test_a_version_is_delivered_until_it_is_taken_back_or_another_one_comes() -> None:
    surveyed = BaseSurveyed(kind="git", root="/w")
    before: list[Event] = [STARTED, surveyed, *planned()[1:], *version(1, "a")]
    state = chat(before)
    assert state.work.version is not None
    done = Delivered(number=1, tree=state.work.version.tree, files=())
    assert not is_delivered(chat([STARTED]))
    assert not is_delivered(state)
    assert is_delivered(chat([*before, done]))
    assert not is_delivered(chat([*before, done, replace(done, number=2, undoes=1)]))
    assert is_delivered(chat([*before, done, replace(done, number=2, undoes=1), replace(done, number=3)]))
    assert not is_delivered(chat([*before, done, *version(2, "b")]))


def test_a_chat_that_has_not_begun_or_was_halted_says_so() -> None:
    assert status(chat([STARTED])) == "not begun"
    halted = chat([*planned(), ChatHalted(cause="no key", remedy="set one")])
    assert status(halted) == "error: no key"
    result = result_of(halted)
    assert (result.status, result.detail, result.exit_code) == ("unfinished", "no key: set one", 3)


def test_a_summary_says_on_one_screen_where_the_chat_stands() -> None:
    before: list[Event] = [*version(1, "a"), *ran(1, "a", green=False), *reviewed(1, accept=False)]
    state = chat(
        [*planned(), *before, *version(2, "b"), *ran(2, "b", green=True), TurnOpened(speaker="reviewer")]
    )
    lines = summary(state).splitlines()
    first, second = (one.tree[:8] for one in state.work.versions)
    assert lines[:5] == [
        "c: unfinished, it was the reviewer's turn",
        "goal: add numbers",
        "team: iterate · 2 versions · 4 answers",
        f"  v1  {first}  add.py, test_add.py  (revise, 1 finding)",
        f"  v2  {second}  add.py, test_add.py  (no review)",
    ]
    assert lines[-3:] == [
        "runs: v2 run, v2 tests, v2 check P2, v2 tests alone (septet show c --output 'v2 run')",
        "network: off",
        "workspace: /w",
    ]
    assert report_table(state) in summary(state)
    begun = summary(chat([STARTED])).splitlines()
    assert begun == [
        "c: not begun",
        "goal: add numbers",
        "team: iterate · 0 versions · 0 answers",
        "workspace: /w",
    ]


def test_the_answer_is_part_of_the_result() -> None:
    given = AnswerGiven(by="clerk", text="42", ground="certain")
    assert result_of(chat([STARTED, given])).answer == "42"
    assert result_of(chat([STARTED])).answer == ""


def test_on_a_narrow_screen_each_requirement_has_lines_of_its_own() -> None:
    state = chat([*planned(), *version(1, "a"), *ran(1, "a", green=True)])
    lines = ["✓  P1 add gives the sum", "   tests test_add.py::test_sum", "   1 passed · by coder only"]
    assert report_table(state, 79).splitlines()[:3] == lines
    assert not report_table(state, 80).startswith(lines[0])
    assert max(map(len, report_table(state, 5).splitlines())) > 5, "a word is not broken"


def test_the_table_gives_each_column_what_the_width_leaves_and_is_empty_without_a_version() -> None:
    assert report_table(chat(planned())) == ""
    long = replace(PLAN, items=(replace(PLAN.items[0], text="word " * 60), PLAN.items[1]))
    begun: list[Event] = [STARTED, PlanProposed(plan=long), PlanApproved(plan=plan_digest(long))]
    state = chat([*begun, *version(1, "a"), *ran(1, "a", green=True)])
    rule = report_table(state, 120).splitlines()[1]
    assert [len(part) for part in rule.split("  ")] == [1, 36, 30, 10, 18, 7]


def test_a_long_name_in_the_table_is_broken_between_its_parts() -> None:
    assert wrapped_cell("tests test_bars.py::test_totals_per_category_first", 26) == [
        "tests",
        "test_bars.py::test_totals_",
        "per_category_first",
    ]
    assert wrapped_cell("tests test_a.py::test_b", 30) == ["tests test_a.py::test_b"]
