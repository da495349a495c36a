"""A wrong check can be challenged: who decides, what may be changed, and how it ends."""

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, ran, reviewed, said, version

from septet.chat.results import result_of, status
from septet.domain.events import (
    ChallengeDecided,
    ChatContinued,
    ChatEnded,
    CheckChallenged,
    Event,
    PlanApproved,
    PlanProposed,
    TurnOpened,
)
from septet.domain.plans import CommandSucceeds, Judged, Plan, Refusal, check_text, plan_digest
from septet.domain.teams import Budget, RoleSpec
from septet.team.challenges import (
    amendment_refusal,
    parse_challenge_decision,
    plan_with_other_check,
    read_challenge,
    unrecorded_challenge,
)
from septet.team.floor import End, Move, Speak
from septet.ways.iterate.briefing import briefing
from septet.ways.table import floor_for

RED = [*planned(), *version(1, "a"), *ran(1, "a", green=False), *reviewed(1, accept=False)]
SAID = CheckChallenged(by="coder", item="P2", reason="2 + 3 is not 6", instead="=> 5")
CHALLENGED = [*RED, TurnOpened(speaker="coder"), said("coder", "P2: check wrong"), SAID]
STANDS = ChallengeDecided(by="planner", item="P2", stands=True, reason="the goal says 6")
OTHER = replace(PLAN.items[1], check=CommandSucceeds(command="python add.py 2 3", prints="6"))
MENDED = replace(PLAN, items=(PLAN.items[0], OTHER))


def next_after(events: list[Event]) -> Move:
    state = chat(events)
    return floor_for(state.team, state.budget)(state)


def decided(event: Event, item: str = "P2") -> list[Event]:
    challenged = [*CHALLENGED[:-1], replace(SAID, item=item)]
    return [*challenged, TurnOpened(speaker="planner"), event]


@pytest.mark.parametrize(
    ("text", "reason", "instead"),
    [
        ("P2: check wrong, because 6 is not the sum; instead => 5", "6 is not the sum", "=> 5"),
        ("- **P2**: check is wrong: nobody can meet it.", "nobody can meet it.", ""),
        ("Sorry.\np2 check wrong because it contradicts P1", "it contradicts P1", ""),
    ],
)
def test_a_challenge_is_read(text: str, reason: str, instead: str) -> None:
    assert read_challenge(chat(RED), "coder", text) == CheckChallenged(
        by="coder", item="P2", reason=reason, instead=instead
    )


def test_a_challenge_names_a_requirement_and_a_reason() -> None:
    assert read_challenge(chat(RED), "coder", "The check seems wrong to me.") is None
    assert read_challenge(chat(RED), "coder", "P9: check wrong, because of it") == Refusal(
        reason="the plan has no P9"
    )
    assert isinstance(read_challenge(chat(RED), "coder", "P1: check wrong"), Refusal)


def test_the_planner_decides_and_is_told_what_the_coder_says() -> None:
    assert next_after(CHALLENGED) == Speak(speaker="planner")
    state = chat([*CHALLENGED, TurnOpened(speaker="planner")])
    told = briefing(RoleSpec(name="planner", role="planner"), state, {})[1].text
    assert "the coder says that it is wrong, 2 + 3 is not 6, instead => 5" in told
    assert parse_challenge_decision(state, "planner", "P2: check stands, because the goal says 6") == STANDS
    assert parse_challenge_decision(state, "planner", "P1: check stands, because of that") is None
    wrong = parse_challenge_decision(state, "planner", "P2: check wrong, because of a slip")
    assert wrong == ChallengeDecided(by="planner", item="P2", stands=False, reason="of a slip")


@pytest.mark.parametrize("joint", ["; instead ", ". Instead: ", ",\n  instead "])
def test_the_planner_puts_another_check_in_its_place_in_one_line(joint: str) -> None:
    state = chat([*CHALLENGED, TurnOpened(speaker="planner")])
    assert state.plan.current is not None
    said = f"**P2**: check wrong, because 2 + 3 is 5{joint}`example add.add(2, 3) => 5`"
    plan = plan_with_other_check(state, said)
    assert isinstance(plan, Plan)
    assert check_text(plan.items[1].check) == "example add.add(2, 3) => 5"
    assert [item for item in plan.items if item.id != "P2"] == [
        item for item in state.plan.items if item.id != "P2"
    ]
    assert plan_with_other_check(state, said.replace("P2", "P1")) is None
    assert plan_with_other_check(state, "P2: check wrong, because it is 5 instead of 6") is None
    assert isinstance(plan_with_other_check(state, "P2: check wrong, because of it; instead better"), Refusal)


def test_a_check_that_stands_goes_back_to_the_coder_who_may_say_it_once_more() -> None:
    events = decided(STANDS)
    assert next_after(events) == Speak(speaker="coder")
    told = briefing(RoleSpec(name="coder", role="coder"), chat([*events, TurnOpened(speaker="coder")]), {})
    assert "the planner says that it stands, the goal says 6" in told[1].text
    again = [*events, TurnOpened(speaker="coder"), said("coder", "again"), SAID]
    end = next_after(again)
    assert isinstance(end, End)
    assert end.reason == "challenged"
    assert "2 + 3 is not 6" in end.detail
    after = chat([*again, ChatEnded(reason="challenged", detail=end.detail, by="coder")])
    assert status(after).startswith("check challenged (P2")
    assert (result_of(after).status, result_of(after).exit_code) == ("challenged", 4)
    resumed = [*again, ChatEnded(reason="challenged"), ChatContinued(budget=Budget())]
    assert next_after(resumed) == Speak(speaker="coder"), "the person wants it to go on"


def test_where_both_say_that_it_is_wrong_the_person_has_to_decide() -> None:
    end = next_after(decided(replace(STANDS, item="P1", stands=False, reason="a slip"), "P1"))
    assert isinstance(end, End)
    assert end.reason == "challenged"
    assert "the planner says that it is wrong, a slip" in end.detail


def test_a_challenge_that_stayed_open_is_the_end_instead_of_no_progress() -> None:
    events = decided(replace(STANDS, item="P1"), "P1")
    for number in range(2, 7):
        events += version(number, "a")
    end = next_after(events)
    assert isinstance(end, End)
    assert end.reason == "challenged"


def test_another_check_in_a_new_plan_settles_it_and_the_old_evidence_is_gone() -> None:
    events = decided(PlanProposed(plan=MENDED))
    state = chat(events)
    assert state.plan.challenges == ()
    assert "P2" not in state.work.evidence
    assert next_after(events) == Speak(speaker="proxy")
    approved = [*events, TurnOpened(speaker="proxy"), PlanApproved(plan=plan_digest(MENDED))]
    assert next_after(approved) == Speak(speaker="runner")


@pytest.mark.parametrize(
    ("plan", "by", "taken"),
    [
        (MENDED, "planner", True),
        (MENDED, "person", False),
        (replace(PLAN, items=PLAN.items[:1]), "planner", False),
        (replace(PLAN, items=(PLAN.items[0], replace(PLAN.items[1], check=Judged()))), "planner", False),
        (replace(MENDED, items=(replace(PLAN.items[0], check=Judged()), OTHER)), "planner", False),
    ],
    ids=["own", "person's", "dropped", "judged", "another one"],
)
def test_where_nobody_is_asked_only_the_challenged_check_of_the_planner_may_change(
    plan: Plan, by: str, taken: bool
) -> None:
    auto = replace(STARTED, team=replace(STARTED.team, approve="auto"))
    first = PlanProposed(plan=PLAN, by="person" if by == "person" else "planner")
    events = [auto, TurnOpened(speaker="planner"), said("planner", "a plan"), first, *CHALLENGED[4:]]
    assert (amendment_refusal(chat(events), plan) is None) == taken


def test_a_challenge_beside_files_is_recorded_unless_that_requirement_was_challenged_before() -> None:
    beside = said("coder", "P2: check wrong, because of it\n\n```python a.py\nP1: check wrong, because\n```")
    turn = [TurnOpened(speaker="coder"), beside]
    found = CheckChallenged(by="coder", item="P2", reason="of it")
    assert unrecorded_challenge(chat([*RED, *turn])) == found
    assert unrecorded_challenge(chat([*CHALLENGED, *turn])) is None, "it is open"
    assert unrecorded_challenge(chat([*CHALLENGED, STANDS, *turn])) is None, "it was decided"
    other = [*decided(replace(STANDS, item="P1"), "P1"), *turn]
    assert unrecorded_challenge(chat(other)) == found, "another one was"
    assert (
        unrecorded_challenge(chat([*RED, turn[0], said("coder", "P9: check wrong, because of it")])) is None
    )
    twice = [*turn, said("coder", "P1: check wrong, because it fails")]
    assert unrecorded_challenge(chat([*RED, *twice])) == replace(found, item="P1", reason="it fails")
