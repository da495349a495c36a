"""A chat that goes on after its end gets as much again, however its way of working counts rounds."""

import pytest
from msgspec.structs import replace
from team.states import chat

from septet.domain.events import ChatContinued, ChatStarted, ModelAnswered, PersonSpoke, TurnOpened
from septet.domain.messages import Answer, Price, Usage
from septet.domain.teams import Budget
from septet.team.floor import Speak
from septet.ways.table import TEAMS, as_much_again, floor_for, rounds_used


@pytest.mark.parametrize(
    ("team", "speakers", "used"),
    [
        ("writer-editor", ["writer", "editor"] * 3, 6),
        ("pair", ["manager", *["coder", "runner"] * 14, "coder"], 30),
        ("iterate", ["planner", "proxy", *["coder", "runner", "reviewer"] * 8], 8),
        ("autocoder", ["planner", *["runner", "coder"] * 20], 20),
        ("assistant", ["proxy", "assistant"] * 20, 40),
        ("plan", ["planner", "proxy"] * 8, 8),
    ],
)
def test_a_chat_that_used_its_rounds_up_gets_as_many_again(team: str, speakers: list[str], used: int) -> None:
    spec = TEAMS[team]
    turns = [TurnOpened(speaker=one) for one in speakers]
    over = chat([ChatStarted(goal="g", team=spec, workspace="/w"), *turns])
    assert rounds_used(over) == used == spec.budget.rounds
    budget = as_much_again(over, spec.budget)
    assert budget.rounds == 2 * used
    more = [ChatContinued(budget=budget), PersonSpoke(text="once more")]
    on = chat([ChatStarted(goal="g", team=spec, workspace="/w"), *turns, *more])
    assert isinstance(floor_for(on.team, on.budget)(on), Speak)


def test_each_bound_is_what_was_used_and_as_much_again_and_what_was_unbound_stays_so() -> None:
    answer = Answer(text="x", usage=Usage(prompt=30, completion=12), cost=0.25, seconds=4.0)
    begun = [ChatStarted(goal="g", team=TEAMS["writer-editor"], workspace="/w"), TurnOpened(speaker="writer")]
    state = chat([*begun, ModelAnswered(role="writer", answer=answer)])
    assert as_much_again(state, Budget(rounds=3, tokens=100, cost=2.0, seconds=60.0)) == Budget(
        rounds=4, tokens=142, cost=2.25, seconds=64.0
    )
    assert as_much_again(state, Budget(rounds=None)) == Budget(rounds=None)


def test_a_price_that_is_said_anew_holds_and_else_that_of_before() -> None:
    old, new = Price(prompt=1.0, completion=2.0), Price(prompt=3.0, completion=4.0)
    team = TEAMS["writer-editor"]
    begun = ChatStarted(goal="g", team=replace(team, budget=replace(team.budget, price=old)), workspace="/w")
    assert as_much_again(chat([begun]), Budget(price=new)).price == new
    assert as_much_again(chat([begun]), Budget()).price == old
    unpriced = ChatStarted(goal="g", team=team, workspace="/w")
    assert as_much_again(chat([unpriced]), Budget(price=new)).price == new
