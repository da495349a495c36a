"""From the bytes of an answer to its pieces, for any wire that streams events."""

from collections.abc import AsyncGenerator
from typing import Protocol

from septet.domain.talk import Delta
from septet.models.faults import Garbled
from septet.models.sse import EventStream
from septet.models.wire import LONGEST_ANSWER, Incoming, oversized

STREAMS = ("text/event-stream", "application/octet-stream", "text/plain")


class Reader(Protocol):
    """What gathers an answer from the data of its events; `done` once the wire has said the last word.

    `size` is how much it has gathered: characters of text, reasoning and calls.
    """

    done: bool
    size: int

    def take(self, data: bytes) -> None: ...
    def fresh(self) -> Delta | None: ...


async def deltas(incoming: Incoming, reader: Reader) -> AsyncGenerator[Delta, None]:
    """What is new after each piece from the network, however many events it held.

    An empty delta is a sign of life: bytes came, but nothing to show. Raises Oversized where it becomes too much.
    """
    longest = incoming.longest or LONGEST_ANSWER
    if incoming.kind == "application/json":
        reader.take(b"".join([piece async for piece in incoming]))
        yield reader.fresh() or Delta()
        return
    if incoming.kind not in STREAMS:
        raise Garbled(f"the server sent {incoming.kind} instead of an answer")
    events = EventStream()
    async for piece in incoming:
        for data in events.feed(piece):
            reader.take(data)
        check_size(max(reader.size, events.pending), longest)
        yield reader.fresh() or Delta()
        if reader.done:
            await incoming.finish()
            return
    for data in events.end():
        reader.take(data)
    if delta := reader.fresh():
        yield delta


def check_size(size: int, longest: int) -> None:
    if size > longest:
        raise oversized(longest)
