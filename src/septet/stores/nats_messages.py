"""A message of the stream and what is in it: an event, or two that are stored together or not at all."""

from collections.abc import Sequence

from septet.domain.bundles import MOST, last_of
from septet.domain.codec import decode, encode
from septet.domain.events import Recorded
from septet.errors import LogDamaged
from septet.stores.nats_stream import Stored
from septet.stores.nats_subjects import chat_of, is_fenced, subject_of


def packed(events: Sequence[Recorded]) -> bytes:
    """A line for each."""
    return b"\n".join(map(encode, events))


def unpacked(stored: Stored) -> list[Recorded]:
    """The events of a message, if it holds what its subject says: by that the server knew who may write it."""
    chat, lines = chat_of(stored.subject), stored.body.split(b"\n")
    first = last_of(stored.seq) - len(lines) + 1
    found = [
        Recorded(chat=chat, seq=seq, at=one.at, event=one.event)
        for seq, one in enumerate(map(decode, lines), start=first)
    ]
    told = subject_of(chat, [one.event for one in found], is_fenced(stored.subject))
    if told != stored.subject or len(found) > MOST:
        raise LogDamaged(
            f"a message of '{chat}' holds something else than its subject {stored.subject}",
            "are all members to be trusted? restore the log from a backup",
        )
    return found
