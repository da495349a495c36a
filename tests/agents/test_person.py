"""What the person's words mean, asked for a plan or for a step."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, version

from septet.agents.person import (
    absent_person,
    agreeing_to_plans,
    agreeing_to_work,
    always_agree,
    with_chat_released,
)
from septet.agents.records import Rehearsal
from septet.domain.approvals import approves
from septet.domain.events import (
    Event,
    FactsChanged,
    PackagesDecided,
    PackagesWanted,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    StepGranted,
    StopRequested,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
    WorkAccepted,
)
from septet.domain.facts import FactsChange
from septet.domain.packages import MissingPackages, Provisions
from septet.domain.plans import plan_digest
from septet.domain.state import State
from septet.errors import NeedsPerson
from septet.ports import Record
from septet.team.questions import SHORT_ACTION, Question, check_action, question, read_answer

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


STEPWISE = replace(STARTED, team=replace(STARTED.team, stepwise=True, packages="ask"))
TURNS: list[Event] = [TurnOpened(speaker="coder"), *version(1, "a"), TurnOpened(speaker="person")]


def test_a_step_is_granted_after_exactly_the_turn_and_for_the_version_that_was_shown() -> None:
    shown = chat([STEPWISE, *TURNS])
    asked = question(shown)
    assert asked is not None
    (granted,) = read_answer(shown, asked, "")
    assert chat([STEPWISE, *TURNS, granted]).floor.granted_steps == 1
    later: list[Event] = [StepGranted(), TurnOpened(speaker="coder"), TurnOpened(speaker="person")]
    other: list[Event] = [*version(2, "b"), TurnOpened(speaker="person")]
    for meanwhile in (later, other):
        stale = chat([STEPWISE, *TURNS, *meanwhile, granted])
        assert stale == replace(chat([STEPWISE, *TURNS, *meanwhile]), seq=stale.seq), "it has no effect"


WANTED = PackagesWanted(missing=MissingPackages(distributions=("rich",)))
OTHERS = PackagesWanted(missing=MissingPackages(distributions=("rich", "left-pad")))


@pytest.mark.parametrize("word", ["yes", "always", "no"])
def test_a_decision_is_about_exactly_the_packages_that_were_shown(word: str) -> None:
    events = [STEPWISE, WANTED, TurnOpened(speaker="person")]
    shown = chat(events)
    asked = question(shown)
    assert asked is not None
    (decided,) = read_answer(shown, asked, word)
    assert question(chat([*events, decided])) != asked
    stale = chat([*events, OTHERS, decided])
    assert stale.work.provisions == chat([*events, OTHERS]).work.provisions, "it has no effect"


def test_what_is_asked_has_a_digest_of_its_tool_its_arguments_and_the_version() -> None:
    asks = ToolCalled(id="1", by="coder", name="ask", arguments='{"question": "blue?"}')
    other = replace(asks, arguments='{"question": "red?"}')
    coder = [*planned(), TurnOpened(speaker="coder")]
    states = [
        PLANNED,
        chat([STARTED, PlanProposed(plan=replace(PLAN, run="rm -r ."))]),
        chat([STEPWISE, WANTED]),
        chat([STEPWISE, OTHERS]),
        chat([STEPWISE, *version(1, "a"), WANTED]),
        chat([*coder, asks]),
        chat([*coder, other]),
        chat([STEPWISE, *TURNS]),
        chat([STEPWISE, *TURNS, *version(2, "b"), TurnOpened(speaker="person")]),
    ]
    asked = [question(state) for state in states]
    actions = [one.action for one in asked if one is not None]
    assert len(set(actions)) == len(states)
    assert [one.action for one in map(question, states) if one is not None] == actions
    check_action(PLANNED, actions[0])
    check_action(PLANNED, actions[0][:SHORT_ACTION])
    for stale in (actions[1], actions[0][: SHORT_ACTION - 1], "x" * 64):
        with pytest.raises(NeedsPerson, match="asks something else"):
            check_action(PLANNED, stale)
    with pytest.raises(NeedsPerson, match="asks nothing"):
        check_action(chat([STARTED]), actions[0])


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


def test_a_declined_package_is_not_asked_about_again_and_others_are() -> None:
    events: list[Event] = [STEPWISE, WANTED, PackagesDecided(names=("rich",), allowed=False)]
    provisions = chat(events).work.provisions
    assert not provisions.to_ask
    assert not provisions.fresh(WANTED.missing)
    assert provisions.fresh(OTHERS.missing).names == {"left-pad"}
    assert chat([*events, OTHERS]).work.provisions.to_ask.names == {"rich", "left-pad"}


def asks(*events: Event) -> State:
    return chat([*planned(), TurnOpened(speaker="coder"), *events])


async def taken_and_released(state: State) -> list[str]:
    told: list[str] = []

    async def person(state: State, record: Record) -> Event | None:
        told.append("asked")
        await record(PersonSpoke(text="hi"))
        return None

    async def record(event: Event) -> State:
        told.append("recorded")
        return state

    agent = with_chat_released(
        person, lambda chat: told.append(f"take {chat}"), lambda chat: told.append(f"release {chat}")
    )
    assert await agent(state, record) is None
    return told


@pytest.mark.anyio
async def test_a_chat_is_free_for_others_while_it_waits_for_the_person() -> None:
    assert await taken_and_released(PLANNED) == ["release c", "asked", "take c", "recorded", "take c"]
    assert await taken_and_released(chat([STARTED])) == ["asked", "take c", "recorded", "take c"]


ASKING = ToolCalled(id="9.1.1", by="coder", name="ask", arguments='{"question": "Tabs?"}', call="c1")


@pytest.mark.anyio
async def test_who_agrees_to_everything_agrees_to_what_is_asked_and_answers_nothing() -> None:
    record = Rehearsal(PLANNED).record
    assert await always_agree(chat([STARTED]), record) is None
    assert await always_agree(PLANNED, record) == PlanApproved(plan=plan_digest(PLAN), by="flag")
    wanted = await always_agree(chat([STEPWISE, WANTED]), record)
    assert wanted == PackagesDecided(names=("rich",), allowed=True, by="flag")
    answer = await always_agree(asks(ASKING), record)
    assert isinstance(answer, ToolAnswered)
    assert (answer.id, answer.summary) == ("9.1.1", "the coder asks: Tabs? → no answer")


@pytest.mark.anyio
async def test_plans_are_agreed_to_and_the_rest_is_the_persons() -> None:
    async def person(state: State, record: Record) -> Event | None:
        return PersonSpoke(text="asked")

    record = Rehearsal(PLANNED).record
    states = {"plan": PLANNED, "packages": chat([STEPWISE, WANTED]), "ask": asks(ASKING)}
    here = {
        (name, make.__name__)
        for name, state in states.items()
        for make in (agreeing_to_work, agreeing_to_plans)
        if await make(person)(state, record) == PersonSpoke(text="asked")
    }
    assert here == {
        ("packages", "agreeing_to_work"),
        ("ask", "agreeing_to_work"),
        ("ask", "agreeing_to_plans"),
    }
