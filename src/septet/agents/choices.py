"""The coder's choice, read from a tool call: which action, why, and, where code and test disagree, who is wrong."""

from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from septet.domain.events import ToolCalled
from septet.domain.files import is_test
from septet.domain.plans import Refusal
from septet.domain.state import State
from septet.domain.values import Value
from septet.team.reason_and_act import DISAGREEMENT
from septet.tools.actions import read_arguments

DECISION: dict[str, object] = {
    "type": "object",
    "description": "Code and test disagree: which one is wrong, by which item of the plan, and why.",
    "properties": {
        "wrong": {"type": "string", "enum": ["code", "test"]},
        "item": {"type": "string", "description": "P1, P2, …"},
        "why": {"type": "string"},
    },
    "required": ["wrong", "item", "why"],
}
UNDECIDED = (
    "a test fails: `decision` must say what is wrong (code or test), by which item of the plan, and why"
)


class Decision(Value, forbid_unknown_fields=True):
    """Which one of code and test is wrong."""

    wrong: Literal["code", "test"]
    item: str
    why: str


class Choice(Value):
    """A call, read: which action, why, with what, and on which decision."""

    action: str
    reasoning: str
    arguments: Mapping[str, object]
    decision: Decision | None = None


def disagreement(state: State) -> bool:
    return state.diagnosis is not None and state.diagnosis.case == DISAGREEMENT


def common_parameters(state: State) -> Mapping[str, object]:
    """What every action asks for in this situation, beside its reasoning."""
    return {"decision": DECISION} if disagreement(state) else {}


def choose(called: ToolCalled, actions: Collection[str], state: State) -> Choice | Refusal:
    """The call, checked as far as that can be done without running it."""
    if called.name not in actions:
        return Refusal(reason=f"there is no action '{called.name}'; the actions are {', '.join(actions)}")
    read = read_arguments(called.arguments)
    if isinstance(read, Refusal):
        return read
    arguments = dict(read)
    reasoning = arguments.pop("reasoning", "")
    if not isinstance(reasoning, str) or not reasoning.strip():
        return Refusal(reason="`reasoning` is missing: say why this action")
    decision = decided(arguments.pop("decision", None), state)
    if isinstance(decision, Refusal):
        return decision
    return Choice(action=called.name, reasoning=reasoning.strip(), arguments=arguments, decision=decision)


def decided(given: object, state: State) -> Decision | Refusal | None:
    if not disagreement(state):
        return None
    items = [item.id for item in (state.plan.items if state.plan else ())]
    try:
        decision = msgspec.convert(given, Decision)
    except msgspec.ValidationError:
        return Refusal(reason=UNDECIDED)
    if decision.item not in items:
        return Refusal(reason=f"the decision names '{decision.item}'; the plan has {', '.join(items)}")
    return decision


def unfit(paths: Collection[str], choice: Choice) -> Refusal | None:
    """Why a change may not be made: it does nothing, or something else than was decided."""
    if not paths:
        return Refusal(reason=f"{choice.action} changes nothing")
    if choice.decision is None:
        return None
    wrong = choice.decision.wrong
    others = [path for path in paths if ("test" if is_test(path) else "code") != wrong]
    if not others:
        return None
    return Refusal(
        reason=f"the decision says that the {wrong} is wrong, but {', '.join(others)} would change"
    )
