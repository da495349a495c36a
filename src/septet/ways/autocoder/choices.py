"""What a call of the autocoder's coder says: the action, its reason, and which of code and test is wrong."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Literal

import msgspec

from septet.common.values import Value
from septet.domain.events import ToolCalled
from septet.domain.files import is_test
from septet.domain.plans import Refusal
from septet.domain.state import State
from septet.tools.registry import read_arguments
from septet.ways.autocoder.policy import DISAGREEMENT

REASONING: dict[str, object] = {"type": "string", "description": "Why this action, in one or two sentences."}
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


class ActionChoice(Value):
    """A parsed call: the action, its reason, arguments and decision."""

    action: str
    reasoning: str
    arguments: Mapping[str, object]
    decision: Decision | None = None


def disagreement(state: State) -> bool:
    return state.work.diagnosis is not None and state.work.diagnosis.case == DISAGREEMENT


def common_parameters(state: State) -> Mapping[str, object]:
    """What every action asks for in this situation."""
    return {"reasoning": REASONING, **({"decision": DECISION} if disagreement(state) else {})}


def read_action(called: ToolCalled, actions: Collection[str], state: State) -> ActionChoice | Refusal:
    """Parse and validate the call without running it."""
    if called.name not in actions:
        return Refusal(reason=f"there is no action '{called.name}'; the actions are {', '.join(actions)}")
    read = read_arguments(called.arguments)
    if isinstance(read, Refusal):
        return read
    arguments = dict(read)
    reasoning = arguments.pop("reasoning", "") or words_beside(state)
    if not isinstance(reasoning, str) or not reasoning.strip():
        return Refusal(reason="`reasoning` is missing: say why this action")
    decision = read_decision(arguments.pop("decision", None) or decision_beside(state), state)
    if isinstance(decision, Refusal):
        return decision
    return ActionChoice(
        action=called.name, reasoning=reasoning.strip(), arguments=arguments, decision=decision
    )


def words_beside(state: State) -> str:
    """What the answer says beside its calls."""
    answers = state.floor.turn.answers if state.floor.turn else ()
    return answers[-1].answer.text.strip() if answers else ""


class DecidedArguments(Value):
    """Of a call's arguments the decision."""

    decision: object = None


def decision_beside(state: State) -> object:
    """The decision of another call of the answer: it is about the same failing tests."""
    answers = state.floor.turn.answers if state.floor.turn else ()
    for call in answers[-1].answer.calls if answers else ():
        with suppress(msgspec.MsgspecError, RecursionError):
            if given := msgspec.json.decode(call.arguments or "{}", type=DecidedArguments).decision:
                return given
    return None


def read_decision(given: object, state: State) -> Decision | Refusal | None:
    if not disagreement(state):
        return None
    items = [item.id for item in state.plan.items]
    try:
        decision = msgspec.convert(given, Decision)
    except msgspec.ValidationError:
        return Refusal(reason=UNDECIDED)
    if decision.item not in items:
        return Refusal(reason=f"the decision names '{decision.item}'; the plan has {', '.join(items)}")
    return decision


def unfit(paths: Collection[str], choice: ActionChoice) -> Refusal | None:
    """Why a change is refused: it changes nothing, or contradicts the decision."""
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
