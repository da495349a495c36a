"""The versioned envelope of events for the store, `--json`, sockets and the bus, compatible with CloudEvents 1.0.

    {"specversion": "1.0", "v": 2, "id": "clock-k3f:7", "source": "septet/clock-k3f", "seq": 7,
     "type": "septet.turn_opened", "subject": "coder", "time": "2026-11-15T09:50:00.123456Z",
     "data": {"speaker": "coder"}}

Old logs stay readable: an upcaster turns the data of one format version into that of the next.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Generic, TypeVar, get_args

import msgspec

from septet.domain.events import Event, Recorded
from septet.domain.runs import Purpose
from septet.errors import LogDamaged

FORMAT = 2
PREFIX = "septet."

Data = dict[str, object]
Upcaster = Callable[[str, Data], tuple[str, Data]]

AGREED, CONTRADICTED = "candidates behave alike", "other candidates do not confirm it"


def from_first(kind: str, data: Data) -> tuple[str, Data]:
    """Format 1 stored the purpose of a run and the origin of a version as free text."""
    if kind in ("run_started", "run_finished"):
        return kind, {**data, **typed_purpose(str(data["purpose"]))}
    if kind == "version_written":
        return kind, {**typed_origin(str(data.get("note", ""))), **data}
    return kind, data


def typed_purpose(text: str) -> Data:
    """An unknown purpose becomes a script's run, on which no decision depends."""
    purpose, _, about = text.partition(" ")
    if purpose in ("check", "script") and about:
        return {"purpose": purpose, "about": about}
    known = "run" if text == "program" else text
    return {"purpose": known} if known in get_args(Purpose) else {"purpose": "script", "about": text}


def typed_origin(note: str) -> Data:
    if note == "as found in the workspace":
        return {"found": True}
    if AGREED in note:
        return {"confirmation": {"verdict": "agreed", "detail": note}}
    if note.startswith(f"{CONTRADICTED}: "):
        detail = note.removeprefix(f"{CONTRADICTED}: ")
        return {"confirmation": {"verdict": "contradicted", "detail": detail}}
    return {"confirmation": {"verdict": "unconfirmed"}} if note.startswith(CONTRADICTED) else {}


UPCASTERS: dict[int, Upcaster] = {1: from_first}
"""Upcasters from format n to n + 1: (kind, data) -> (kind, data)."""


EVENTS: tuple[type[Event], ...] = get_args(Event)
KINDS = {event: re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower() for event in EVENTS}
"""`RunFinished` is stored as `run_finished`."""
ACTORS = {
    event: tuple(field for field in ("role", "speaker", "by", "member") if field in event.__struct_fields__)
    for event in EVENTS
}
"""Fields that say who acted, in order of preference."""
DECODERS: dict[str, msgspec.json.Decoder[Event]] = {
    KINDS[event]: msgspec.json.Decoder(event) for event in EVENTS
}
ENCODER = msgspec.json.Encoder()


T = TypeVar("T")


class EventEnvelope(msgspec.Struct, Generic[T], frozen=True, kw_only=True, omit_defaults=True):
    """The wire form. `subject` is who acted, if anybody did."""

    specversion: str
    v: int
    id: str
    source: str
    type: str
    time: datetime
    seq: int
    data: T
    subject: str = ""


ENVELOPE_DECODER = msgspec.json.Decoder(EventEnvelope[msgspec.Raw])


@cache
def decoder_of(kind: str) -> msgspec.json.Decoder[EventEnvelope[Event]]:
    """Decodes an envelope together with its event."""
    return msgspec.json.Decoder(EventEnvelope[next(event for event in EVENTS if KINDS[event] == kind)])


def kind_of(event: Event) -> str:
    return KINDS[type(event)]


def encode_event(event: Event) -> bytes:
    """Encode an event without its envelope."""
    return ENCODER.encode(event)


def decode_event(kind: str, data: bytes | memoryview, version: int = FORMAT) -> Event:
    """Decode an event of any format version."""
    if version != FORMAT:
        kind, data = upcast(kind, bytes(data), version)
    decoder = DECODERS.get(kind)
    if decoder is None:
        raise LogDamaged(
            f"the log contains an unknown event '{kind}'", "a newer Septet may have written it; update"
        )
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise LogDamaged(
            f"an event '{kind}' in the log cannot be read ({error})", "restore it from a backup"
        ) from error


def upcast(kind: str, data: bytes, version: int) -> tuple[str, bytes]:
    if version > FORMAT:
        raise LogDamaged(
            f"the log has format {version}, this program supports up to {FORMAT}", "update Septet"
        )
    fields = msgspec.json.decode(data, type=dict[str, object])
    for step in range(version, FORMAT):
        if step not in UPCASTERS:
            raise LogDamaged(
                f"the log has format {version}, which no Septet ever wrote", "restore it from a backup"
            )
        kind, fields = UPCASTERS[step](kind, fields)
    return kind, ENCODER.encode(fields)


def encode(recorded: Recorded) -> bytes:
    """Encode as one line of JSON, without a line end."""
    envelope = EventEnvelope(
        specversion="1.0",
        v=FORMAT,
        id=f"{recorded.chat}:{recorded.seq}",
        source=f"septet/{recorded.chat}",
        type=PREFIX + kind_of(recorded.event),
        subject=actor(recorded.event),
        time=datetime.fromtimestamp(recorded.at, UTC),
        seq=recorded.seq,
        data=recorded.event,
    )
    return ENCODER.encode(envelope)


def decode(line: bytes | str) -> Recorded:
    envelope = decode_envelope(line)
    return recorded_as(envelope, envelope.source.removeprefix("septet/"), envelope.seq)


def decode_as(line: bytes, chat: str, seq: int, kind: str) -> Recorded:
    """An event that has its place in the log from where it was found, whatever its envelope says.

    One that is of the expected kind is decoded in one pass.
    """
    try:
        envelope = decoder_of(kind).decode(line) if kind in DECODERS else None
    except msgspec.MsgspecError:
        envelope = None
    if envelope is None or envelope.v != FORMAT or envelope.type != f"{PREFIX}{kind}":
        return recorded_as(decode_envelope(line), chat, seq)
    return Recorded(chat=chat, seq=seq, at=envelope.time.timestamp(), event=envelope.data)


def decode_envelope(line: bytes | str) -> EventEnvelope[msgspec.Raw]:
    try:
        return ENVELOPE_DECODER.decode(line)
    except msgspec.MsgspecError as error:
        raise LogDamaged(f"not a line of a Septet log ({error})", "export the chat again") from error


def recorded_as(envelope: EventEnvelope[msgspec.Raw], chat: str, seq: int) -> Recorded:
    kind, data = envelope.type.removeprefix(PREFIX), memoryview(envelope.data)
    return Recorded(
        chat=chat, seq=seq, at=envelope.time.timestamp(), event=decode_event(kind, data, envelope.v)
    )


def actor(event: Event) -> str:
    """Return who acted, for the envelope's subject."""
    for field in ACTORS[type(event)]:
        if name := getattr(event, field):
            return str(name)
    return ""
