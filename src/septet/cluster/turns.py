"""The messages by which members on many machines take turns.

    a turn is opened in the log --> the server notifies one member that serves the speaker's role
    that member stores its events under the log's fence, then opens the next turn: the same loop as on one machine
    conductor -- TurnOrder --> a member that serves the role, if no member took the turn or one fell silent
    member    -- Heartbeat | TurnFailed | MemberLeft --> the conductor of the chat

These messages are not stored and decide nothing: the log says who has the floor and what happened. A member that takes
a turn continues where the log ends. If a slow member was believed dead, its next event is refused: the fence lets only
one of the two continue.
"""

import msgspec

from septet.common.text import encode_token
from septet.common.values import Value
from septet.errors import RemoteFailed, SeptetError

ORDER_SUBJECT, TURN_SUBJECT = "septet.work", "septet.said"
LEASE = 5.0
"""Seconds of silence after which a member counts as dead and its turn goes to another."""


class TurnOrder(Value):
    """Asks for a member to take the turn that the event `opened` opened."""

    chat: str
    opened: int


class Heartbeat(Value, tag="beat"):
    """The member is still working."""


class TurnFailed(Value, tag="failed"):
    error: str
    cause: str
    remedy: str = ""


class MemberLeft(Value, tag="left"):
    """The member leaves: another one may take the turn at once."""


TurnMessage = Heartbeat | TurnFailed | MemberLeft
ENCODER = msgspec.json.Encoder()
TURN_MESSAGE_DECODER: msgspec.json.Decoder[TurnMessage] = msgspec.json.Decoder(TurnMessage)
ORDER_DECODER = msgspec.json.Decoder(TurnOrder)


def turn_subject(chat: str) -> str:
    """The subject of members' messages about the chat's turn."""
    return f"{TURN_SUBJECT}.{encode_token(chat)}"


def turn_failed(error: Exception) -> TurnFailed:
    if isinstance(error, SeptetError):
        return TurnFailed(error=type(error).__name__, cause=error.cause, remedy=error.remedy)
    return TurnFailed(error=type(error).__name__, cause=" ".join(str(error).split())[:500])


def as_error(failure: TurnFailed, speaker: str) -> SeptetError:
    """The member's error as an exception, of the same class if we know it, so that it ends the chat the same way."""
    for kind in error_kinds(SeptetError):
        if kind.__name__ == failure.error:
            return kind(failure.cause, failure.remedy)
    return RemoteFailed(
        f"the {speaker} failed on its machine ({failure.error}: {failure.cause})", "resume the chat"
    )


def error_kinds(kind: type[SeptetError]) -> list[type[SeptetError]]:
    return [kind, *(nested for child in kind.__subclasses__() for nested in error_kinds(child))]
