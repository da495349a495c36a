"""Budgets stop a chat before the turn that would exceed them, with the reason named."""

import pytest
from team.states import STARTED, chat

from septet.domain.events import ModelAnswered
from septet.domain.state import State
from septet.domain.talk import Answer, Usage
from septet.domain.teams import Budget
from septet.team.floors import round_robin
from septet.team.limits import usual_spending, within_budget
from septet.team.moves import End, Move, Speak


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
    assert "would not do for the coder's next turn" in ended.detail


def test_what_is_used_up_is_said_so() -> None:
    ended = move(spent(300), tokens=300)
    assert isinstance(ended, End)
    assert ended.detail == "300 tokens are used up"


def test_a_speaker_without_a_past_costs_nothing_yet() -> None:
    assert usual_spending(spent(100), "reviewer").usage.total == 0
    assert usual_spending(spent(100, 200), "coder").usage.total == 150
