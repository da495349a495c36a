"""What a conductor and a member on another machine say to each other during a turn.

    conductor  -- Order -->  one of those who serve the role; while nobody does, it is asked again
    member     -- events --> the log, under its fence; the log tells the conductor and everybody else
    member     -- Beat | Finished | Failed | Left --> conductor

Nothing here is kept, and nothing of it counts: the turn is open in the log, and so is what it brought. An order that
got lost is placed again after a silence, and a member that takes a turn goes on where the log says it is. A member
that was slow and believed dead finds its next event refused: the fence lets one of two go on.
"""

import msgspec

from septet.domain.values import Value
from septet.errors import RemoteFailed, SeptetError

WORK = "septet.work"
LEASE = 5.0
"""Seconds of silence after which a member counts as dead and its turn is given to another."""


class Order(Value):
    """A turn that somebody must take.

    `news` are the chat's events after `since`, for one who saw it until then: the log need not be read.
    """

    chat: str
    speaker: str
    role: str
    turn: int
    since: int = -1
    news: tuple[msgspec.Raw, ...] = ()


class Beat(Value, tag="beat"):
    """The member is still at it."""

    turn: int


class Finished(Value, tag="finished"):
    """The turn has nothing left to do; `seq` is the last event that it brought."""

    turn: int
    seq: int


class Failed(Value, tag="failed"):
    turn: int
    error: str
    cause: str
    remedy: str = ""


class Left(Value, tag="left"):
    """The member goes away in order: somebody else may take the turn at once."""

    turn: int


Say = Beat | Finished | Failed | Left
ENCODER = msgspec.json.Encoder()
SAYS: msgspec.json.Decoder[Say] = msgspec.json.Decoder(Say)
ORDERS = msgspec.json.Decoder(Order)


def failed(turn: int, error: Exception) -> Failed:
    if isinstance(error, SeptetError):
        return Failed(turn=turn, error=type(error).__name__, cause=error.cause, remedy=error.remedy)
    return Failed(turn=turn, error=type(error).__name__, cause=" ".join(str(error).split())[:500])


def as_error(failure: Failed, speaker: str) -> SeptetError:
    """The member's error here: the same kind where we know it, so that it ends the chat as it would at home."""
    for kind in known_errors(SeptetError):
        if kind.__name__ == failure.error:
            return kind(failure.cause, failure.remedy)
    return RemoteFailed(
        f"the {speaker} failed on its machine ({failure.error}: {failure.cause})", "resume the chat"
    )


def known_errors(kind: type[SeptetError]) -> list[type[SeptetError]]:
    return [kind, *(below for one in kind.__subclasses__() for below in known_errors(one))]
