"""How a turn finds one who takes it, on many machines.

    a turn is opened in the log  --> the server tells one of those who serve the speaker's role
    who takes it stores what it does under the log's fence, then opens the next turn: the same loop as at home
    conductor -- Order -->  one of those who serve the role: where nobody had heard, or one has fallen silent
    member    -- Heartbeat | TurnFailed | MemberLeft --> whoever follows the chat

Nothing said here is kept, and nothing of it counts: who has the floor is in the log, and so is what came of it. One
who takes a turn goes on where the log says it is. A member that was slow and believed dead finds its next event
refused: the fence lets one of two go on.
"""

import msgspec

from septet.common.text import encode_token
from septet.common.values import Value
from septet.errors import RemoteFailed, SeptetError

ORDER_SUBJECT, TURN_SUBJECT = "septet.work", "septet.said"
LEASE = 5.0
"""Seconds of silence after which a member counts as dead and its turn is given to another."""


class Order(Value):
    """A turn that is open since the event `opened`."""

    chat: str
    opened: int


class Heartbeat(Value, tag="beat"):
    """The member is still at it."""


class TurnFailed(Value, tag="failed"):
    error: str
    cause: str
    remedy: str = ""


class MemberLeft(Value, tag="left"):
    """The member goes away in order: somebody else may take the turn at once."""


TurnMessage = Heartbeat | TurnFailed | MemberLeft
ENCODER = msgspec.json.Encoder()
TURN_MESSAGE_DECODER: msgspec.json.Decoder[TurnMessage] = msgspec.json.Decoder(TurnMessage)
ORDER_DECODER = msgspec.json.Decoder(Order)


def turn_subject(chat: str) -> str:
    """Where members tell what becomes of the chat's turn."""
    return f"{TURN_SUBJECT}.{encode_token(chat)}"


def turn_failed(error: Exception) -> TurnFailed:
    if isinstance(error, SeptetError):
        return TurnFailed(error=type(error).__name__, cause=error.cause, remedy=error.remedy)
    return TurnFailed(error=type(error).__name__, cause=" ".join(str(error).split())[:500])


def as_error(failure: TurnFailed, speaker: str) -> SeptetError:
    """The member's error here: the same kind where we know it, so that it ends the chat as it would at home."""
    for kind in error_kinds(SeptetError):
        if kind.__name__ == failure.error:
            return kind(failure.cause, failure.remedy)
    return RemoteFailed(
        f"the {speaker} failed on its machine ({failure.error}: {failure.cause})", "resume the chat"
    )


def error_kinds(kind: type[SeptetError]) -> list[type[SeptetError]]:
    return [kind, *(below for one in kind.__subclasses__() for below in error_kinds(one))]
