"""What the person's words mean, asked for a plan or for a step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat

from septet.agents.proxy import APPROVALS, Question, agreeing_to_work, approves, away, question, understood
from septet.domain.events import PersonSpoke, PlanApproved, PlanProposed, StepGranted, StopRequested
from septet.domain.packages import Missing, Provisions
from septet.domain.plans import plan_digest
from septet.errors import NeedsPerson

PLANNED = chat([STARTED, PlanProposed(plan=PLAN)])
STEP = Question(kind="step", text="")


@pytest.mark.parametrize(
    "words",
    [
        "",
        "  ",
        "Sounds good!",
        "sounds good, save it.",
        "Approve",
        "Please save the plan. Thanks!",
        "OK, go ahead",
    ],
)
def test_nothing_but_approval_approves_what_was_shown(words: str) -> None:
    asked = question(PLANNED)
    assert asked is not None
    assert understood(PLANNED, asked, words) == PlanApproved(plan=plan_digest(PLAN))


@pytest.mark.parametrize("words", ["sounds good, but shorter", "save it as a CSV", "thanks", "no", "not ok"])
def test_a_single_wish_more_is_feedback(words: str) -> None:
    asked = question(PLANNED)
    assert asked is not None
    assert understood(PLANNED, asked, words) == PersonSpoke(text=words)


@pytest.mark.parametrize(
    ("words", "event"),
    [
        ("", StepGranted()),
        ("step", StepGranted()),
        ("c", StepGranted(freely=True)),
        ("continue", StepGranted(freely=True)),
        ("q", StopRequested()),
        ("use fewer colours", PersonSpoke(text="use fewer colours")),
    ],
)
def test_a_step_all_steps_a_stop_or_words(words: str, event: object) -> None:
    assert understood(PLANNED, STEP, words) == event


@given(st.text())
def test_whatever_is_approved_is_made_of_approval(text: str) -> None:
    said = text.lower()
    assert not approves(text) or not said.strip() or any(words in said for words in APPROVALS - {""})


@pytest.mark.anyio
async def test_who_agreed_to_the_work_is_still_asked_what_is_installed() -> None:
    agent = agreeing_to_work(away)
    assert [event async for event in agent(PLANNED)] == [PlanApproved(plan=plan_digest(PLAN), by="flag")]
    team = replace(PLANNED.team, packages="ask")
    wanted = Provisions(wanted=Missing(distributions=("rich",)))
    wanting = replace(PLANNED, chat="c", team=team, provisions=wanted)
    with pytest.raises(NeedsPerson, match="septet resume c 'yes'"):
        assert [event async for event in agent(wanting)] == []
