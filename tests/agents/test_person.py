"""What the person's words mean, asked for a plan or for a step."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, version

from septet.agents.person import absent_person, agreeing_to_work
from septet.agents.records import Rehearsal
from septet.domain.approvals import approves
from septet.domain.events import (
    FactsChanged,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    StepGranted,
    StopRequested,
    WorkAccepted,
)
from septet.domain.facts import FactsChange
from septet.domain.packages import MissingPackages, Provisions
from septet.domain.plans import plan_digest
from septet.errors import NeedsPerson
from septet.team.questions import Question, question, read_answer

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
        "Looks good to me",
        "looks good to me, thanks!",
        "I approve",
        "I approve the plan.",
        "the plan is good, please save it",
        "That's fine, please go ahead.",
        "Yes, that looks great. Let's go!",
        "ok save it please",
        "We agree",
        "LGTM!",
    ],
)
def test_nothing_but_approval_approves_what_was_shown(words: str) -> None:
    asked = question(PLANNED)
    assert asked is not None
    assert read_answer(PLANNED, asked, words) == (PlanApproved(plan=plan_digest(PLAN)),)


@pytest.mark.parametrize(
    "words",
    [
        "sounds good, but shorter",
        "looks good but shorter",
        "Looks good to me if it is blue",
        "I approve of the first point only",
        "the plan is not good",
        "the plan is good for nothing",
        "I do not approve",
        "approve it once it has colours",
        "save it as a CSV",
        "use it with SQLite",
        "thanks",
        "please",
        "good",
        "no",
        "not ok",
        "is it good?",
        "yes?",
    ],
)
def test_a_single_wish_more_is_feedback(words: str) -> None:
    asked = question(PLANNED)
    assert asked is not None
    assert read_answer(PLANNED, asked, words) == (PersonSpoke(text=words),)


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
    assert read_answer(PLANNED, STEP, words) == (event,)


PIECES = ["looks good", "to me", "i approve", "save", "it", "the plan", "but", "not", "blue", "no", "thanks"]
MIXED = st.lists(st.sampled_from(PIECES))


@given(st.one_of(st.text(), MIXED.map(" ".join), MIXED.map(", ".join)))
def test_whatever_is_approved_says_nothing_else(text: str) -> None:
    words = set(re.findall(r"\w+", text.lower()))
    assert not approves(text) or not text.strip() or (words and not words & {"but", "not", "blue", "no"})


@pytest.mark.parametrize("words", ["Looks good to me", "ok, go on", ""])
def test_approval_at_a_review_lets_the_team_go_on_and_other_words_are_heard(words: str) -> None:
    review = Question(kind="review", text="")
    assert read_answer(PLANNED, review, words) == (StepGranted(),)
    assert read_answer(PLANNED, review, "looks good but blue") == (PersonSpoke(text="looks good but blue"),)
    assert read_answer(PLANNED, review, "I accept it.") == read_answer(PLANNED, review, "accept")
    assert read_answer(PLANNED, review, "accept") == (WorkAccepted(),)
    written = chat([*planned(), *version(1, "a")])
    assert written.work.version is not None
    assert read_answer(written, review, "accept") == (WorkAccepted(tree=written.work.version.tree),)


@pytest.mark.anyio
async def test_who_agreed_to_the_work_is_still_asked_what_is_installed() -> None:
    agent = agreeing_to_work(absent_person("septet resume c"))
    assert await agent(PLANNED, Rehearsal(PLANNED).record) == PlanApproved(plan=plan_digest(PLAN), by="flag")
    team = replace(PLANNED.team, packages="ask")
    wanted = Provisions(wanted=MissingPackages(distributions=("rich",)))
    wanting = replace(PLANNED, chat="c", team=team, work=replace(PLANNED.work, provisions=wanted))
    with pytest.raises(NeedsPerson, match="septet resume c 'yes'"):
        await agent(wanting, Rehearsal(wanting).record)


def test_facts_beside_other_words_lose_neither() -> None:
    asked, fact = question(PLANNED), FactsChanged(by="person", change=FactsChange(add=("names are short",)))
    assert asked is not None
    said = "remember: names are short\nand make it blue"
    assert read_answer(PLANNED, asked, said) == (fact, PersonSpoke(text="and make it blue"))
    assert read_answer(PLANNED, asked, "remember: names are short") == (fact,)
    assert read_answer(PLANNED, asked, "Looks good to me.\nremember: names are short") == (
        fact,
        PlanApproved(plan=plan_digest(PLAN)),
    )
