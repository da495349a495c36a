"""What the calls of one answer of the autocoder's coder say together."""

import msgspec
from team.states import chat, planned, version

from septet.domain.events import DecisionRecorded, ModelAnswered, ToolCalled, TurnOpened
from septet.domain.messages import Answer, ToolCall
from septet.domain.plans import Refusal
from septet.ways.autocoder.choices import ActionChoice, read_action
from septet.ways.autocoder.policy import DISAGREEMENT

DECISION = {"wrong": "code", "item": "P1", "why": "it subtracts"}


def chosen(text: str, *calls: dict[str, object]) -> list[ActionChoice | Refusal]:
    """The choices of an answer while a test fails."""
    wished = [
        ToolCall(id=f"c{place}", name="write_code", arguments=msgspec.json.encode(call).decode())
        for place, call in enumerate(calls)
    ]
    state = chat(
        [
            *planned(),
            *version(1, "a"),
            DecisionRecorded(by="runner", what="code and test disagree", why="red", case=DISAGREEMENT),
            TurnOpened(speaker="coder"),
            ModelAnswered(role="coder", answer=Answer(text=text, calls=tuple(wished))),
        ]
    )
    called = [
        ToolCalled(id=f"9.{place}", by="coder", name=one.name, arguments=one.arguments, call=one.id)
        for place, one in enumerate(wished, start=1)
    ]
    return [read_action(one, ["write_code"], state) for one in called]


def test_words_and_decision_beside_a_call_count_for_it() -> None:
    first, second = chosen("It adds now.", {"path": "a.py", "decision": DECISION}, {"path": "b.py"})
    for one in (first, second):
        assert isinstance(one, ActionChoice)
        assert one.reasoning == "It adds now."
        assert one.decision is not None
        assert one.decision.item == "P1"


def test_without_words_or_a_decision_the_call_is_refused() -> None:
    (silent,) = chosen("", {"path": "a.py", "decision": DECISION})
    (undecided,) = chosen("It adds now.", {"path": "a.py"})
    assert isinstance(silent, Refusal)
    assert isinstance(undecided, Refusal)
    assert "`reasoning` is missing" in silent.reason
    assert "`decision` must say" in undecided.reason
