"""A chat that goes on after its end gets as much again, however its way of working counts rounds."""

import pytest
from team.states import chat

from septet.domain.events import ChatContinued, ChatStarted, PersonSpoke, TurnOpened
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
