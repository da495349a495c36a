"""Who speaks next: a floor policy is a pure function from the state to a move."""

from collections.abc import Callable

from septet.domain.events import ChatEnded, TurnOpened
from septet.domain.state import State
from septet.domain.teams import EndReason
from septet.domain.values import Value


class Speak(Value):
    speaker: str


class End(Value):
    reason: EndReason
    detail: str = ""


Move = Speak | End


def step(state: State, move: Move) -> TurnOpened | ChatEnded:
    """The event that makes the move."""
    if isinstance(move, End):
        return ChatEnded(reason=move.reason, detail=move.detail, by=state.turn.speaker if state.turn else "")
    name = move.speaker
    role = next((member.role for member in state.team.members if member.name == name), name)
    return TurnOpened(speaker=name, role=role if role != name else "")


Floor = Callable[[State], Move]
