"""Budgets stop a chat before the turn that would exceed them, with the reason named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from team.states import STARTED, chat

from septet.domain.events import (
    BudgetReached,
    ChatContinued,
    ChatEnded,
    Event,
    ModelAnswered,
    RunFinished,
    TurnOpened,
)
from septet.domain.messages import Answer, Message, Purse, Request, Usage, estimate_usage
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.domain.teams import Allowance, Budget, RoleSpec
from septet.team.budgets import (
    cost_limit_for,
    exceeded_budget,
    expected_spending,
    usual_spending,
    within_budget,
)
from septet.team.floor import End, Move, Speak
from septet.ways.round_robin.policy import round_robin


def spent(*tokens: int) -> State:
    answers = [
        ModelAnswered(role="coder", answer=Answer(text="x", usage=Usage(prompt=count), cost=count / 100))
        for count in tokens
    ]
    return chat([STARTED, *answers])


def move(state: State, **limits: float) -> Move:
    budget = Budget(rounds=None, tokens=int(limits.get("tokens", 0)) or None, cost=limits.get("cost"))
    return within_budget(budget, round_robin(["coder"]))(state)


@pytest.mark.parametrize("limits", [{"tokens": 300}, {"cost": 3.0}])
def test_a_turn_like_those_before_it_must_fit(limits: dict[str, float]) -> None:
    assert move(spent(), **limits) == Speak(speaker="coder")
    assert move(spent(100, 100), **limits) == Speak(speaker="coder")
    ended = move(spent(100, 140), **limits)
    assert isinstance(ended, End)
    assert ended.reason == "bound"
    assert "budget is too small for the coder's next turn" in ended.detail


def test_what_is_used_up_is_said_so() -> None:
    ended = move(spent(300), tokens=300)
    assert isinstance(ended, End)
    assert ended.detail == "the token budget of 300 is used up"


def test_a_speaker_without_a_past_costs_nothing_yet() -> None:
    assert usual_spending(spent(100), "reviewer").usage.total == 0


def test_the_next_answer_is_taken_to_cost_as_much_as_the_newest_or_the_average() -> None:
    assert usual_spending(spent(100, 200), "coder").usage.total == 200
    assert usual_spending(spent(200, 100), "coder").usage.total == 150


def own(*events: Event, **limits: float) -> State:
    """A chat whose coder has a budget of its own."""
    allowed = Allowance(
        tokens=int(limits["tokens"]) if "tokens" in limits else None,
        cost=limits.get("cost"),
        seconds=limits.get("seconds"),
    )
    members = (RoleSpec(name="coder", role="coder", budget=allowed), RoleSpec(name="editor", role="reviewer"))
    started = replace(STARTED, team=replace(STARTED.team, members=members))
    return chat([started, *events])


def answered(role: str, tokens: int) -> ModelAnswered:
    answer = Answer(text="x", usage=Usage(prompt=tokens), cost=tokens / 100, seconds=tokens / 10)
    return ModelAnswered(role=role, answer=answer)


@pytest.mark.parametrize("limits", [{"tokens": 300}, {"cost": 3.0}, {"seconds": 30.0}])
def test_a_member_has_a_budget_of_its_own(limits: dict[str, float]) -> None:
    free = Budget(rounds=None)
    within = own(answered("coder", 100), answered("editor", 900), answered("coder", 100), **limits)
    assert exceeded_budget(within, free, "coder") == ""
    spent_most = own(answered("coder", 100), answered("coder", 140), **limits)
    assert "budget is too small for its next turn" in exceeded_budget(spent_most, free, "coder")
    assert exceeded_budget(spent_most, free, "editor") == ""
    spent_all = own(answered("coder", 300), **limits)
    assert exceeded_budget(spent_all, free, "coder").startswith("the coder's ")
    assert exceeded_budget(spent_all, free, "coder").endswith(" is used up")


def test_the_time_of_programs_is_the_members_who_ran_them() -> None:
    ran = RunFinished(
        id="1", purpose="run", command="x", result=RunResult(exit_code=0, seconds=40.0), tree="t"
    )
    state = own(TurnOpened(speaker="coder"), ran, seconds=30.0)
    assert exceeded_budget(state, Budget(), "coder") == "the coder's time budget of 30 s is used up"


def test_a_chat_that_is_opened_again_gives_a_member_as_much_again() -> None:
    used_up = [answered("coder", 300), ChatEnded(reason="bound", detail="x")]
    again = own(*used_up, ChatContinued(budget=Budget(rounds=None)), tokens=300)
    assert exceeded_budget(again, Budget(rounds=None), "coder") == ""
    further = own(*used_up, ChatContinued(budget=Budget(rounds=None)), answered("coder", 300), tokens=300)
    assert (
        exceeded_budget(further, Budget(rounds=None), "coder") == "the coder's token budget of 300 is used up"
    )


def request(text: str, longest: int | None = None) -> Request:
    return Request(role="coder", step=1, messages=(Message(role="user", text=text),), max_tokens=longest)


@given(st.text(max_size=400), st.none() | st.integers(1, 500), st.integers(1, 1000), st.booleans())
def test_a_first_answer_is_asked_for_exactly_where_its_estimate_fits(
    text: str, longest: int | None, limit: int, whole: bool
) -> None:
    state = own() if whole else own(tokens=limit)
    budget = Budget(rounds=None, tokens=limit if whole else None)
    asked = request(text, longest)
    why = exceeded_budget(state, budget, "coder", expected_spending(state, "coder", asked))
    assert (why == "") == (estimate_usage(asked).total <= limit)
    if why:
        whose = "the" if whole else "the coder's"
        assert why.startswith(f"{whose} token budget is too small for ")
        assert why.endswith(f": 0 of {limit:,} used, about {estimate_usage(asked).total:,} needed")


@given(st.text(max_size=400), st.integers(1, 1000))
def test_what_was_counted_is_believed_rather_than_an_estimate(text: str, counted: int) -> None:
    state = own(answered("coder", counted))
    assert expected_spending(state, "coder", request(text)) == usual_spending(state, "coder")


def test_a_chat_that_ran_short_ends_with_the_reason_and_can_be_opened_again() -> None:
    short = BudgetReached(by="coder", why="the token budget of 300 is used up")
    events = [TurnOpened(speaker="coder"), short]
    assert move(own(*events)) == End(reason="bound", detail=short.why)
    turn = own(*events).floor.turn
    assert turn is not None
    assert turn.closed
    ended = [*events, ChatEnded(reason="bound", detail=short.why)]
    assert move(own(*ended, ChatContinued(budget=Budget(rounds=None)))) == Speak(speaker="coder")


def test_a_first_answer_may_cost_what_the_narrower_budget_has_left() -> None:
    spent_by_another = answered("editor", 40)
    assert cost_limit_for(own(spent_by_another), "coder") is None
    narrow = own(spent_by_another, cost=0.25)
    assert cost_limit_for(narrow, "coder") == Purse(remaining=0.25, limit="the coder's cost budget of $0.25")
    whole = replace(narrow, budget=Budget(cost=0.5))
    assert cost_limit_for(whole, "coder") == Purse(remaining=0.5 - 0.4, limit="the cost budget of $0.5")
    assert cost_limit_for(own(answered("coder", 1), cost=0.25), "coder") is None
