"""What a conductor and a member on another machine say to each other during a turn.

    conductor  -- Order -->  work stream (kept until somebody has done it, one queue per role)
    member     -- Hello -->  conductor: "may I?"            <-- Reply: a grant, or why not
    member     -- Made  -->  conductor: an event            <-- Reply, once the event is in the log
    member     -- Beat  -->  conductor: "I am still at it"  <-- Reply, or: the turn is another's now
    member     -- Finished | Failed | Left --> conductor

The conductor alone gives grants, one at a time: whoever holds an old one is refused. It alone writes the log,
under the log's own fence: a conductor that was replaced cannot grant anything that counts.
"""

import msgspec

from septet.domain.codec import decode_event, encode_event, kind_of
from septet.domain.events import Event
from septet.domain.values import Value
from septet.errors import RemoteFailed, SeptetError

STREAM = "SEPTET_WORK"
WORK = "septet.work"
LEASE = 5.0
"""Seconds without a beat after which a member counts as dead and its turn is given to another."""


class Order(Value):
    """A turn that somebody must take; `inbox` is where the conductor listens."""

    chat: str
    speaker: str
    role: str
    inbox: str


class Hello(Value, tag="hello"):
    """`attempt` names one try of one member, so that a repeated question gets the same answer."""

    attempt: str
    member: str


class Beat(Value, tag="beat"):
    grant: int


class Made(Value, tag="made"):
    """The `number`-th event of the grant."""

    grant: int
    number: int
    kind: str
    data: msgspec.Raw

    @property
    def event(self) -> Event:
        return decode_event(self.kind, bytes(self.data))


class Finished(Value, tag="finished"):
    grant: int


class Failed(Value, tag="failed"):
    grant: int
    error: str
    cause: str
    remedy: str = ""


class Left(Value, tag="left"):
    """The member goes away in order: somebody else may take the turn at once."""

    grant: int


class Reply(Value):
    grant: int = 0
    refused: str = ""


Granted = Beat | Made | Finished | Failed | Left
Say = Hello | Granted
ENCODER = msgspec.json.Encoder()
SAYS: msgspec.json.Decoder[Say] = msgspec.json.Decoder(Say)
REPLIES = msgspec.json.Decoder(Reply)
ORDERS = msgspec.json.Decoder(Order)


def made(grant: int, number: int, event: Event) -> Made:
    return Made(grant=grant, number=number, kind=kind_of(event), data=msgspec.Raw(encode_event(event)))


def failed(grant: int, error: Exception) -> Failed:
    if isinstance(error, SeptetError):
        return Failed(grant=grant, error=type(error).__name__, cause=error.cause, remedy=error.remedy)
    return Failed(grant=grant, error=type(error).__name__, cause=" ".join(str(error).split())[:500])


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
