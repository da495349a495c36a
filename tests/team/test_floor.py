"""Who speaks next: pure functions of the state, which never leave a chat without an end or a speaker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, ran, reviewed, said, version

from septet.domain.events import (
    ChatContinued,
    ChatEnded,
    Event,
    ExampleGiven,
    ModelAnswered,
    PackagesWanted,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    ReplyRefused,
    ReviewGiven,
    RunFinished,
    StepGranted,
    StopRequested,
    TurnOpened,
    WorkAccepted,
)
from septet.domain.messages import Answer, Usage
from septet.domain.packages import MissingPackages, Policy
from septet.domain.plans import plan_digest
from septet.domain.runs import RunResult
from septet.domain.teams import Budget, RoleSpec
from septet.errors import BadConfig
from septet.team.budgets import within_budget
from septet.team.floor import End, Move, Speak, at_most, repeated_tries, step, stepwise
from septet.team.questions import question
from septet.ways.iterate.policy import plan_then_iterate
from septet.ways.round_robin.policy import round_robin
from septet.ways.table import TEAMS, floor_for

TEAM = TEAMS["iterate"]
V1 = [*planned(), *version(1, "a")]
RED = [*V1, *ran(1, "a", green=False)]
GREEN = [*V1, *ran(1, "a", green=True)]


def next_after(events: list[Event], budget: Budget = TEAM.budget) -> Move:
    return floor_for(TEAM, budget)(chat(events))


@pytest.mark.parametrize(
    ("events", "speaker"),
    [
        ([STARTED], "planner"),
        ([STARTED, PlanProposed(plan=PLAN)], "proxy"),
        ([STARTED, PlanProposed(plan=PLAN), PersonSpoke(text="shorter")], "planner"),
        ([STARTED, PlanProposed(plan=PLAN), PlanApproved(plan="of another text")], "proxy"),
        (planned(), "coder"),
        (V1, "runner"),
        (RED, "reviewer"),
        ([*RED, *reviewed(1, accept=False)], "coder"),
        ([*GREEN], "reviewer"),
        ([*GREEN, *reviewed(1, accept=False)], "coder"),
        ([*GREEN, *reviewed(1, accept=False), *version(2, "b")], "runner"),
    ],
)
def test_the_iterating_team_goes_round(events: list[Event], speaker: str) -> None:
    assert next_after(events) == Speak(speaker=speaker)


def test_done_needs_green_evidence_and_the_reviewer() -> None:
    assert next_after([*GREEN, *reviewed(1, accept=True)]) == End(reason="done", detail="every check passed")


def test_a_reviewer_cannot_accept_over_red_evidence() -> None:
    assert next_after([*RED, *reviewed(1, accept=True)]) == Speak(speaker="coder")


def test_tests_that_pass_without_the_program_prove_nothing() -> None:
    vacuous = [*V1, *ran(1, "a", green=True, alone=False), *reviewed(1, accept=True)]
    assert next_after(vacuous) == Speak(speaker="coder")


def test_evidence_of_an_older_version_does_not_count() -> None:
    assert next_after([*GREEN, *version(2, "b")]) == Speak(speaker="runner")


def test_rounds_bound_the_coder() -> None:
    move = next_after([*RED, *reviewed(1, accept=False)], Budget(rounds=1))
    assert move == End(reason="bound", detail="1 round is used up")


def test_a_reply_that_could_not_be_used_is_no_round() -> None:
    refusal = ReplyRefused(role="coder", reason="no code block")
    refused = [TurnOpened(speaker="coder"), said("coder", "hm"), refusal]
    assert next_after([*planned(), *refused, *refused], Budget(rounds=1)) == Speak(speaker="coder")
    written = [*planned(), *refused, *version(1, "a"), *ran(1, "a", green=False), *reviewed(1, accept=False)]
    assert next_after(written, Budget(rounds=2)) == Speak(speaker="coder")
    assert next_after(written, Budget(rounds=1)) == End(reason="bound", detail="1 round is used up")


@pytest.mark.parametrize(
    ("budget", "unit"),
    [
        (Budget(tokens=100), "token budget"),
        (Budget(cost=0.5), "cost budget"),
        (Budget(seconds=9), "time budget"),
    ],
)
def test_each_bound_ends_the_chat_by_its_name(budget: Budget, unit: str) -> None:
    paid = Answer(text="x", usage=Usage(prompt=90, completion=10), cost=0.5, seconds=9)
    move = next_after([*planned(), ModelAnswered(role="coder", answer=paid)], budget)
    assert isinstance(move, End)
    assert move.reason == "bound"
    assert unit in move.detail


def test_replies_that_cannot_be_used_end_the_chat_after_a_few() -> None:
    refusals: list[Event] = []
    for _ in range(3):
        assert next_after([*planned(), *refusals]) == Speak(speaker="coder")
        refusals += [
            TurnOpened(speaker="coder"),
            said("coder", "hm"),
            ReplyRefused(role="coder", reason="no code block"),
        ]
    move = next_after([*planned(), *refusals])
    assert isinstance(move, End)
    assert (move.reason, "no code block" in move.detail) == ("error", True)


def test_the_same_code_climbs_the_ladder_before_it_ends_the_chat() -> None:
    events = [*RED, *reviewed(1, accept=False)]
    moves: list[Move] = []
    for number in range(2, 6):
        events += version(number, "a")
        moves.append(move := next_after(events))
        if move == Speak(speaker="exemplar"):
            events += [TurnOpened(speaker="exemplar"), ExampleGiven(failure=chat(events).work.failure)]
        if move == Speak(speaker="proxy"):
            events += [TurnOpened(speaker="proxy"), StepGranted()]
        assert isinstance(move, End) or next_after(events) == Speak(speaker="coder")
    speakers = [move.speaker if isinstance(move, Speak) else move.reason for move in moves]
    assert speakers == ["exemplar", "coder", "proxy", "no_progress"]
    assert moves[-1] == End(reason="no_progress", detail="the same code came 5 times in a row")
    assert next_after([*events, ChatContinued(budget=Budget())]) == Speak(speaker="coder")


def test_the_same_code_over_green_checks_is_shown_to_the_person_before_it_ends_the_chat() -> None:
    events = [*GREEN, *reviewed(1, accept=False), *version(2, "a"), *version(3, "a")]
    assert next_after(events) == Speak(speaker="coder")
    events += version(4, "a")
    assert next_after(events) == Speak(speaker="proxy")
    answered = [*events, TurnOpened(speaker="proxy"), PersonSpoke(text="do it otherwise")]
    assert next_after(answered) == Speak(speaker="coder")
    move = next_after([*answered, *version(5, "a")])
    assert isinstance(move, End)
    assert move.reason == "no_progress"


@pytest.mark.parametrize(("left", "stuck"), [((5, 4, 3, 2, 1), False), ((3, 3, 3, 3, 3), True)])
def test_fewer_failing_tests_are_progress(left: tuple[int, ...], stuck: bool) -> None:
    events = [*planned()]
    for number, count in enumerate(left, start=1):
        failing = [f"FAILED test_add.py::test_{one} - assert 1 == 2" for one in range(count)]
        said = "E   assert 1 == 2\n=== short test summary info ===\n" + "\n".join(failing)
        written = version(number, f"{number}")
        tree = chat([*events, *written]).work.versions[-1].tree
        result = RunResult(exit_code=1, stdout=said)
        run = RunFinished(id=f"v{number} tests", purpose="tests", command="", tree=tree, result=result)
        events += [*written, TurnOpened(speaker="runner"), run]
    state = chat(events)
    assert state.work.same_failures == (5 if stuck else 1)
    assert isinstance(next_after(events, Budget(rounds=9)), End) == stuck


def test_another_failing_test_is_another_failure() -> None:
    def failed(number: int, name: str) -> list[Event]:
        said = (
            f"E   assert 1 == 2\n=== short test summary info ===\nFAILED test_add.py::{name} - assert 1 == 2"
        )
        result = RunResult(exit_code=1, stdout=said)
        run = RunFinished(id=f"v{number} tests", purpose="tests", command="", tree="", result=result)
        return [*version(number, f"{number}"), TurnOpened(speaker="runner"), run]

    assert chat([*planned(), *failed(1, "test_a"), *failed(2, "test_a")]).work.same_failures == 2
    assert chat([*planned(), *failed(1, "test_a"), *failed(2, "test_b")]).work.same_failures == 1


def test_the_person_can_stop_at_any_time() -> None:
    assert next_after([*RED, StopRequested()]) == End(reason="stopped", detail="stopped by the person")


def test_a_consulted_person_is_asked_once_before_each_review() -> None:
    floor = floor_for(replace(TEAM, consult=True), TEAM.budget)
    started = replace(STARTED, team=replace(TEAM, consult=True))
    events = [started, *GREEN[1:]]
    assert floor(chat(events)) == Speak(speaker="proxy")
    asked = [*events, TurnOpened(speaker="proxy"), PersonSpoke(text="the hand is too thin")]
    assert floor(chat(asked)) == Speak(speaker="reviewer")


def test_the_person_may_take_the_work_as_it_is() -> None:
    assert next_after([*RED, WorkAccepted(tree="another")]) == next_after(RED)
    assert next_after([*RED, WorkAccepted()]) == End(reason="accepted", detail="as it is")


def test_a_reviewer_who_is_never_pleased_is_bounded_and_reported() -> None:
    events = [*planned()]
    for number in (1, 2, 3):
        given = ReviewGiven(version=number, tree="", verdict="revise", green=True)
        events += [*version(number, f"{number}"), *ran(number, f"{number}", green=True), given]
    move = next_after(events)
    assert isinstance(move, End)
    assert (move.reason, "the reviewer wanted more 3 times" in move.detail) == ("bound", True)


def test_the_same_failure_climbs_a_ladder() -> None:
    events = [*planned()]
    moves: list[Move] = []
    for number in range(1, 6):
        events += [
            *version(number, f"{number}"),
            *ran(number, f"{number}", green=False),
            *reviewed(number, accept=False),
        ]
        move = next_after(events)
        moves.append(move)
        if move == Speak(speaker="exemplar"):
            events += [TurnOpened(speaker="exemplar"), ExampleGiven(failure=chat(events).work.failure)]
            assert next_after(events) == Speak(speaker="coder")
        if move == Speak(speaker="proxy"):
            events += [TurnOpened(speaker="proxy"), PersonSpoke(text="think of the sign")]
            assert next_after(events) == Speak(speaker="coder")
    speakers = [move.speaker if isinstance(move, Speak) else move.reason for move in moves]
    assert speakers == ["coder", "exemplar", "coder", "proxy", "no_progress"]


def test_stepwise_asks_before_every_turn() -> None:
    floor = stepwise(plan_then_iterate)
    assert floor(chat([STARTED])) == Speak(speaker="proxy", next="planner")
    granted: list[Event] = [STARTED, TurnOpened(speaker="proxy"), StepGranted()]
    assert floor(chat(granted)) == Speak(speaker="planner")
    planned = chat([*granted, TurnOpened(speaker="planner"), PlanProposed(plan=PLAN)])
    assert floor(planned) == Speak(speaker="proxy")


def test_round_robin_gives_everybody_the_floor_in_turn_exactly_k_times() -> None:
    members, k = ["writer", "editor", "critic"], 10
    floor = at_most(k, round_robin(members))
    events: list[Event] = [STARTED]
    while isinstance(move := floor(chat(events)), Speak):
        events.append(TurnOpened(speaker=move.speaker))
    order = [event.speaker for event in events if isinstance(event, TurnOpened)]
    assert order == [members[i % 3] for i in range(k)]


def test_an_unknown_floor_is_named() -> None:
    with pytest.raises(BadConfig, match="plan_then_iterate"):
        floor_for(replace(TEAM, floor="anarchy"), TEAM.budget)


def test_no_bound_is_no_bound() -> None:
    assert within_budget(Budget(rounds=None), plan_then_iterate)(chat(planned())) == Speak(speaker="coder")


@st.composite
def parts_of_chats(draw: st.DrawFn) -> list[Event]:
    """Something that may happen next, sensible or not."""
    number, content, good, alone = draw(
        st.tuples(st.integers(1, 5), st.sampled_from("ab"), st.booleans(), st.booleans())
    )
    single: list[Event] = [
        PlanProposed(plan=PLAN),
        PlanApproved(plan=plan_digest(PLAN)),
        PersonSpoke(text="hm"),
        StopRequested(),
        StepGranted(),
        ReplyRefused(role="coder", reason="no"),
        ChatContinued(budget=Budget(rounds=3)),
    ]
    larger = [
        version(number, content),
        ran(number, content, green=good, alone=alone),
        reviewed(number, accept=good),
    ]
    return draw(st.sampled_from([*([event] for event in single), *larger]))


@given(st.lists(parts_of_chats(), max_size=25), st.booleans())
def test_every_state_has_a_next_speaker_of_the_team_or_an_end(
    parts: list[list[Event]], stepped: bool
) -> None:
    team = replace(TEAM, stepwise=stepped)
    state = chat([STARTED, *(event for part in parts for event in part)])
    move = floor_for(team, Budget(rounds=4, tokens=1000))(state)
    names = {member.name for member in team.members}
    assert isinstance(move, End) or move.speaker in names


def test_who_stands_for_the_person_may_have_any_name() -> None:
    members = tuple(
        replace(one, name="ada" if one.role == "proxy" else one.name) for one in STARTED.team.members
    )
    team = replace(STARTED.team, members=members, consult=True)
    floor = floor_for(team, team.budget)
    begun: list[Event] = [replace(STARTED, team=team), PlanProposed(plan=PLAN)]
    assert floor(chat(begun)) == Speak(speaker="ada")
    built = [*begun, TurnOpened(speaker="ada", role="proxy"), PlanApproved(plan=plan_digest(PLAN))]
    assert (closed := chat(built).floor.turn) is not None
    assert closed.closed
    seen = [*built, *version(1, "a"), *ran(1, "a", green=True)]
    assert floor(chat(seen)) == Speak(speaker="ada")
    asked = question(chat([*seen, TurnOpened(speaker="ada", role="proxy")]))
    assert asked is not None
    assert asked.kind == "review"


@pytest.mark.parametrize(("policy", "speaker"), [("ask", "proxy"), ("auto", "runner"), ("off", "runner")])
def test_the_person_is_asked_about_packages_only_where_the_team_asks(policy: Policy, speaker: str) -> None:
    asking = replace(TEAM, packages=policy)
    wanted = PackagesWanted(missing=MissingPackages(distributions=("numpy",)))
    state = chat([replace(STARTED, team=asking), *V1[1:], wanted])
    assert floor_for(asking, asking.budget)(state) == Speak(speaker=speaker)


def test_a_move_is_recorded_with_the_role_where_the_name_does_not_say_it() -> None:
    members = (RoleSpec(name="ada", role="coder"), RoleSpec(name="runner", role="runner"))
    state = chat([replace(STARTED, team=replace(TEAM, members=members)), TurnOpened(speaker="runner")])
    assert step(state, Speak(speaker="ada", next="runner")) == TurnOpened(
        speaker="ada", role="coder", next="runner"
    )
    assert step(state, Speak(speaker="runner")) == TurnOpened(speaker="runner")
    assert step(state, Speak(speaker="somebody")) == TurnOpened(speaker="somebody")
    assert step(state, End(reason="done", detail="well")) == ChatEnded(
        reason="done", detail="well", by="runner"
    )


def test_tries_are_equal_if_the_code_or_the_failure_is_the_same() -> None:
    def tries(*versions: tuple[str, bool]) -> int:
        events = planned()
        for number, (content, green) in enumerate(versions, start=1):
            events += [*version(number, content), *ran(number, content, green=green)]
        return repeated_tries(chat(events))

    assert tries(("a", True)) == 1
    assert tries(("a", False), ("b", False)) == 2
    assert tries(("a", False), ("b", True)) == 1
    assert tries(("a", True), ("a", True), ("a", True)) == 3
    assert repeated_tries(chat([STARTED])) == 1
