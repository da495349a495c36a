"""What the person does on the page: an approval names exactly the plan or the version that was seen."""

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, version

from septet.chat.results import open_question
from septet.domain.events import (
    Event,
    PackagesWanted,
    PlanProposed,
    Recorded,
    StepGranted,
    TurnOpened,
    WorkAccepted,
)
from septet.domain.packages import MissingPackages
from septet.domain.plans import plan_digest
from septet.errors import BadUsage, Conflict, NeedsPerson
from septet.team.questions import question, read_answer
from septet.web.actions import acceptance, approval, check_named, check_said, digest_at, grants
from septet.web.requests import Resume, Step

LOG = [
    Recorded(chat="c", seq=1, at=0.0, event=STARTED),
    Recorded(chat="c", seq=12, at=0.0, event=PlanProposed(plan=PLAN)),
]


def test_a_plan_is_found_at_its_own_sequence_only() -> None:
    assert digest_at(LOG, 12) == plan_digest(PLAN)
    for seq in (0, 1, 5, 13):
        with pytest.raises(BadUsage, match=f"no plan at {seq} "):
            digest_at([one for one in LOG if one.seq > seq - 1], seq)


def test_an_approval_of_a_plan_that_has_changed_since_is_refused() -> None:
    altered = replace(PLAN, run="rm -r .")
    state = chat([STARTED, PlanProposed(plan=PLAN), PlanProposed(plan=altered)])
    assert approval(state, plan_digest(altered)).plan == plan_digest(altered)
    for digest in (plan_digest(PLAN), ""):
        with pytest.raises(Conflict, match="the plan has changed"):
            approval(state, digest)


def test_an_acceptance_of_an_older_version_is_refused() -> None:
    state = chat([*planned(), *version(1, "a"), *version(2, "b")])
    assert state.work.version is not None
    newest = WorkAccepted(tree=state.work.version.tree)
    assert acceptance(state, newest.tree) == newest
    for tree in ("a", ""):
        with pytest.raises(Conflict, match="a newer version"):
            acceptance(state, tree)
    with pytest.raises(BadUsage, match="no version"):
        acceptance(chat(planned()), "")


STEPWISE = replace(STARTED, team=replace(STARTED.team, stepwise=True, packages="ask"))
TURN: list[Event] = [*version(1, "a"), TurnOpened(speaker=STARTED.team.person)]


def test_a_turn_is_granted_only_by_who_names_the_one_that_was_shown() -> None:
    state = chat([STEPWISE, *TURN])
    asked = open_question(state)
    assert asked is not None
    granted = (StepGranted(action=asked.action),)
    assert grants(state, Step(action=asked.action)) == grants(state, Resume(action=asked.action)) == granted
    assert grants(state, Resume()) == (), "to go on is no approval"
    with pytest.raises(NeedsPerson, match="does not name what it approves"):
        grants(state, Step())
    later = chat([STEPWISE, *TURN, TurnOpened(speaker="coder"), TurnOpened(speaker=STARTED.team.person)])
    for act in (Step(action=asked.action), Resume(action=asked.action)):
        with pytest.raises(NeedsPerson, match="asks something else by now"):
            grants(later, act)


@pytest.mark.parametrize("words", ["yes", "always", "no"])
def test_words_that_decide_name_the_question_that_was_shown_and_others_need_not(words: str) -> None:
    person = TurnOpened(speaker=STARTED.team.person)
    shown = chat([STEPWISE, PackagesWanted(missing=MissingPackages(distributions=("rich",))), person])
    altered = chat([STEPWISE, PackagesWanted(missing=MissingPackages(distributions=("ruch",))), person])
    asked = question(shown)
    assert asked is not None
    check_named(shown, read_answer(shown, asked, words), asked.action)
    check_named(shown, read_answer(shown, asked, "what is it for?"), "")
    with pytest.raises(NeedsPerson, match="asks something else by now"):
        check_named(altered, read_answer(altered, question(altered), words), asked.action)
    with pytest.raises(NeedsPerson, match="does not name what it approves"):
        check_named(shown, read_answer(shown, asked, words), "")


def test_words_are_heard_after_the_question_on_the_screen_was_answered_and_a_late_yes_is_not() -> None:
    asked = question(chat(planned()[:-1]))
    assert asked is not None
    working = chat([*planned(), TurnOpened(speaker="coder")])
    assert question(working) is None
    words = "keep it short"
    check_said(working, words, read_answer(working, None, words), asked.action)
    with pytest.raises(NeedsPerson, match="asks nothing now"):
        check_said(working, "yes", read_answer(working, None, "yes"), asked.action)
