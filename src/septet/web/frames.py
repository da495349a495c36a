"""What goes over a socket: frames of JSON, each encoded once for all who watch."""

from collections.abc import Iterator, Sequence

from septet.domain.codec import ENCODER, encode
from septet.domain.events import Recorded
from septet.domain.values import Value
from septet.web.shelf import Summary
from septet.web.streams import Piece

EVENTS_A_FRAME = 500


class Frame(Value):
    """`first` and `last` are the sequences of the events in it; 0 for anything else."""

    text: str
    first: int = 0
    last: int = 0


class Standing(Value, omit_defaults=False):
    """What the server does for a chat: whether it conducts it, and what keeps it from doing so."""

    chat: str
    conducted: bool = False
    pausing: bool = False
    trouble: str = ""
    remedy: str = ""


def events_frame(events: Sequence[Recorded]) -> Frame:
    inner = b",".join(map(encode, events)).decode()
    return Frame(text=f'{{"kind":"events","events":[{inner}]}}', first=events[0].seq, last=events[-1].seq)


def history(events: Sequence[Recorded]) -> Iterator[Frame]:
    """A long log in frames that can be sent one after the other, so that others get their turn."""
    for start in range(0, len(events), EVENTS_A_FRAME):
        yield events_frame(events[start : start + EVENTS_A_FRAME])


def pieces_frame(pieces: Sequence[Piece]) -> Frame:
    return framed({"kind": "pieces", "pieces": pieces})


def standing_frame(standing: Standing) -> Frame:
    return framed({"kind": "standing", "standing": standing})


def chats_frame(chats: Sequence[Summary]) -> Frame:
    return framed({"kind": "chats", "chats": chats})


def ready_frame(seq: int) -> Frame:
    """The watcher has everything up to this sequence; what follows is live."""
    return framed({"kind": "ready", "seq": seq})


def framed(content: object) -> Frame:
    return Frame(text=ENCODER.encode(content).decode())
