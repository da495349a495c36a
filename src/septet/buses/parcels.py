"""A message between agents: a CloudEvent with what delivering it needs as extension attributes."""

from datetime import UTC, datetime
from secrets import token_hex

import msgspec

from septet.errors import BadUsage


class Caller(msgspec.Struct, frozen=True):
    """An agent that waits further up in a chain of requests, and where its process can be reached."""

    agent: str
    inbox: str


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """`data` is JSON. `topic` or `recipient` says where it goes, `reply` where an answer is waited for."""

    id: str
    source: str
    type: str
    time: datetime
    data: msgspec.Raw
    specversion: str = "1.0"
    datacontenttype: str = "application/json"
    subject: str = ""
    sender: str = ""
    topic: str = ""
    recipient: str = ""
    reply: str = ""
    deadline: float = 0.0
    chain: tuple[Caller, ...] = ()


class Answered(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply to a request: data, or the type and text of what went wrong."""

    data: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    text: str = ""


class DeadLetter(msgspec.Struct, frozen=True):
    """A parcel that nobody could handle, and why."""

    recipient: str
    reason: str
    parcel: Parcel


ENCODER = msgspec.json.Encoder()
PARCELS = msgspec.json.Decoder(Parcel)
ANSWERS = msgspec.json.Decoder(Answered)
DEAD_LETTERS = msgspec.json.Decoder(DeadLetter)


def new_parcel(kind: str, data: object, sender: str, identity: str = "") -> Parcel:
    try:
        content = ENCODER.encode(data)
    except TypeError as error:
        raise BadUsage(f"a message '{kind}' cannot be sent ({error})", "send what JSON can hold") from error
    return Parcel(
        id=identity or token_hex(12),
        source=f"septet/{sender}" if sender else "septet",
        type=kind,
        time=datetime.now(UTC),
        data=msgspec.Raw(content),
        sender=sender,
    )
