"""From the bytes of an answer to its pieces, for any wire that streams events."""

from collections.abc import AsyncGenerator
from typing import Protocol

from septet.domain.talk import Delta
from septet.models.faults import Garbled
from septet.models.sse import EventStream
from septet.models.wire import Incoming

STREAMS = ("text/event-stream", "application/octet-stream", "text/plain")


class Reader(Protocol):
    """What gathers an answer from the data of its events; `done` once the wire has said the last word."""

    done: bool

    def take(self, data: bytes) -> None: ...
    def fresh(self) -> Delta | None: ...


async def deltas(incoming: Incoming, reader: Reader) -> AsyncGenerator[Delta, None]:
    """What is new after each piece from the network, however many events it held.

    An empty delta is a sign of life: bytes came, but nothing to show.
    """
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
        yield reader.fresh() or Delta()
        if reader.done:
            await incoming.finish()
            return
    for data in events.end():
        reader.take(data)
    if delta := reader.fresh():
        yield delta
