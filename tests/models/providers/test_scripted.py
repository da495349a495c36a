"""Scripted and replayed models: matched by role and step, and clear where script and run disagree."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from septet.domain.codec import encode
from septet.domain.events import ModelAnswered, Recorded, TurnOpened
from septet.domain.messages import Answer, Delta, Message, Request, Usage
from septet.errors import BadConfig
from septet.models.providers.replay import ReplayModel, load_recording
from septet.models.providers.scripted import Script, ScriptedModel, ScriptedTurn, load_script
from septet.ports import Model

pytestmark = pytest.mark.anyio


def request(role: str, step: int, told: str = "") -> Request:
    return Request(role=role, step=step, messages=(Message(role="user", text=told),))


async def answers(model: Model, asked: Request) -> Sequence[Delta | Answer]:
    return [piece async for piece in model.answer(asked)]


SCRIPT = Script(
    turns=(
        ScriptedTurn(role="coder", say="first"),
        ScriptedTurn(role="planner", say="a plan", expect="the goal"),
        ScriptedTurn(role="coder", say="second  try", files={"a.py": "a = 1\n"}),
    )
)


async def test_pieces_add_up_to_the_answer_which_comes_last_and_once() -> None:
    *pieces, last = await answers(ScriptedModel(SCRIPT, "s"), request("coder", 2))
    assert isinstance(last, Answer)
    assert last.text == "second  try\n\n```python a.py\na = 1\n```"
    assert "".join(piece.text for piece in pieces) == last.text
    assert all(isinstance(piece, Delta) for piece in pieces)


async def test_a_step_is_found_by_role_whatever_was_asked_before() -> None:
    first = await answers(ScriptedModel(SCRIPT, "s"), request("coder", 1))
    assert isinstance(first[-1], Answer)
    assert first[-1].text == "first"


async def test_a_script_that_runs_dry_says_so() -> None:
    with pytest.raises(BadConfig, match=r"script s has no step 3 of the coder \(it has 2\)"):
        await answers(ScriptedModel(SCRIPT, "s"), request("coder", 3))


async def test_a_script_that_disagrees_with_the_run_says_so() -> None:
    with pytest.raises(BadConfig, match="disagree at step 1 of the planner: 'the goal' was expected"):
        await answers(ScriptedModel(SCRIPT, "s"), request("planner", 1, "something else"))


def test_a_step_twice_is_an_error() -> None:
    twice = Script(turns=(ScriptedTurn(role="coder", step=1), ScriptedTurn(role="coder", step=1)))
    with pytest.raises(BadConfig, match="step 1 of the coder twice"):
        ScriptedModel(twice, "s")


def test_an_empty_script_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("turns: []\n")
    with pytest.raises(BadConfig, match="has no turns"):
        load_script(tmp_path / "s.yaml")


def recorded() -> list[Recorded]:
    answer = Answer(text="hello", model="m", usage=Usage(prompt=3, completion=1), cost=0.5, reasoning="hm")
    events = [TurnOpened(speaker="coder"), ModelAnswered(role="coder", answer=answer)]
    return [Recorded(chat="c", seq=seq, at=1.0, event=event) for seq, event in enumerate(events, start=1)]


async def test_a_recorded_chat_answers_as_it_did(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(encode(one) + b"\n" for one in recorded()))
    pieces = await answers(ReplayModel(load_recording(path), "log"), request("coder", 1))
    assert pieces == [
        Delta(reasoning="hm"),
        Delta(text="hello"),
        Answer(text="hello", model="m", usage=Usage(prompt=3, completion=1), cost=0.5, reasoning="hm"),
    ]


async def test_a_recording_that_ends_says_so() -> None:
    with pytest.raises(BadConfig, match="has no answer 2 of the coder"):
        await answers(ReplayModel(recorded(), "log"), request("coder", 2))


async def test_a_script_can_repeat_what_it_is_told() -> None:
    turn = ScriptedTurn(role="coder", say="open {{path}}", take={"path": r"file (\S+)"})
    (*_, last) = await answers(
        ScriptedModel(Script(turns=(turn,)), "s"), request("coder", 1, "file a.csv now")
    )
    assert isinstance(last, Answer)
    assert last.text == "open a.csv"
    with pytest.raises(BadConfig, match="disagree at step 1 of the coder"):
        await answers(ScriptedModel(Script(turns=(turn,)), "s"), request("coder", 1, "nothing"))
