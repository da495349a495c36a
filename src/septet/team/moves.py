"""Who speaks next: a floor policy is a pure function from the state to a move."""

from collections.abc import Callable

from septet.domain.state import State
from septet.domain.teams import EndReason
from septet.domain.values import Value


class Speak(Value):
    speaker: str


class End(Value):
    reason: EndReason
    detail: str = ""


Move = Speak | End
Floor = Callable[[State], Move]
