"""Step mode names the step that comes next; a review can be skipped, and then the evidence alone decides."""

import pytest
from msgspec.structs import replace
from team.test_floor import PLAN, STARTED, chat

from septet.domain.events import (
    Event,
    PlanApproved,
    PlanProposed,
    ReviewGiven,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
    VersionWritten,
)
from septet.domain.plans import plan_digest
from septet.domain.state import Spending, SpendingState
from septet.team.questions import NO_ANSWER, question, read_answer

STEPWISE = replace(STARTED, team=replace(STARTED.team, stepwise=True))
PLANNED: list[Event] = [STEPWISE, PlanProposed(plan=PLAN), PlanApproved(plan=plan_digest(PLAN))]
WRITTEN: list[Event] = [*PLANNED, VersionWritten(number=1, files=(), tree="tree")]


def test_the_next_step_is_named() -> None:
    for events, member, text in (
        ([STEPWISE], "planner", "next: the planner writes the plan"),
        (PLANNED, "coder", "next: the coder writes version v1"),
        (WRITTEN, "runner", "next: the runner runs and tests version v1"),
    ):
        asked = question(chat([*events, TurnOpened(speaker="proxy", next=member)]))
        assert asked is not None
        assert (asked.kind, asked.text, asked.can_skip) == ("step", text, False)


def test_a_plan_comes_with_what_the_work_will_cost_about() -> None:
    planned = [STARTED, PlanProposed(plan=PLAN)]
    free = question(chat(planned))
    assert free is not None
    assert not free.note, "an answer without a price says nothing"
    spent = SpendingState(members={"planner": Spending(answers=2, cost=0.02)})
    asked = question(replace(chat(planned), spending=spent))
    assert asked is not None
    assert asked.note == "cost so far $0.0200; a small program takes 4 to 15 answers, about $0.04 to $0.15"


@pytest.mark.parametrize(
    ("answers", "about"),
    [(2, "$0.04 to $0.15"), (4, "$0.05 to $0.15"), (14, "$0.15 to $0.15"), (20, "$0.21 to $0.21")],
)
def test_a_small_program_costs_one_answer_more_than_there_were_at_least(answers: int, about: str) -> None:
    spent = SpendingState(members={"planner": Spending(answers=answers, cost=0.01 * answers)})
    asked = question(replace(chat([STARTED, PlanProposed(plan=PLAN)]), spending=spent))
    assert asked is not None
    assert asked.note.endswith(f"about {about}")


def test_a_skipped_review_leaves_the_verdict_to_the_evidence() -> None:
    state = chat([*WRITTEN, TurnOpened(speaker="proxy", next="reviewer")])
    asked = question(state)
    assert asked is not None
    assert asked.can_skip
    assert read_answer(state, asked, "s") == (ReviewGiven(version=1, tree="tree", verdict="revise"),)


def test_what_the_person_answers_goes_to_the_member_that_asked_and_no_answer_is_one() -> None:
    calls = [ToolCalled(id="1.1", by="coder", name="ask", arguments='{"question": " Blue? "}')]
    state = chat([*PLANNED, TurnOpened(speaker="coder"), *calls])
    asked = question(state)
    assert asked is not None
    assert (asked.kind, asked.text, asked.call) == ("ask", "the coder asks: Blue?", "1.1")
    assert read_answer(state, asked, " red\n") == (
        ToolAnswered(id="1.1", text="red", summary="the coder asks: Blue? → red"),
    )
    assert read_answer(state, asked, " ") == (
        ToolAnswered(id="1.1", text=NO_ANSWER, summary="the coder asks: Blue? → no answer"),
    )
