"""Server-sent events from bytes, exact under any split of them, and the answer that they bring in parts."""

from collections.abc import AsyncGenerator
from typing import Protocol

from septet.domain.messages import Answer, Delta, StopReason, ToolCall
from septet.models.faults import InvalidAnswer
from septet.models.http import MAX_ANSWER_BYTES, HttpResponse, answer_too_large


class EventStream:
    """Feed it what the socket gives; it returns the data of each event that is complete by then."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._fresh = True

    @property
    def pending_bytes(self) -> int:
        """How many bytes wait for the end of their event."""
        return sum(map(len, self._pending))

    def feed(self, piece: bytes) -> list[bytes]:
        # Only a line end can complete an event: a long one that comes in crumbs is joined once.
        waits = bool(self._pending) and self._pending[-1].endswith(b"\r")
        self._pending.append(piece)
        if not waits and b"\n" not in piece and b"\r" not in piece:
            return []
        text = b"".join(self._pending)
        if self._fresh:
            text = text.removeprefix(b"\xef\xbb\xbf")
            self._fresh = False
        # A carriage return at the very end may be half of a line end.
        held = text[-1:] if text.endswith(b"\r") else b""
        if b"\r" in text:
            text = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *blocks, rest = text.split(b"\n\n")
        self._pending = [rest + held]
        return [data for block in blocks if (data := event_data(block)) is not None]

    def end(self) -> list[bytes]:
        """The last event, where the server left out only the blank line after it."""
        whole_lines = b"".join(self._pending).endswith((b"\n", b"\r"))
        return self.feed(b"\n\n") if whole_lines else []


def event_data(block: bytes) -> bytes | None:
    """The data lines of one event; None where it has none (a comment, a name alone)."""
    if block.startswith(b"data: ") and b"\n" not in block:
        return block[6:]
    lines = [
        line[5:].removeprefix(b" ") if line[4:5] == b":" else b""
        for line in block.split(b"\n")
        if line.startswith(b"data:") or line == b"data"
    ]
    return b"\n".join(lines) if lines else None


STREAMS = ("text/event-stream", "application/octet-stream", "text/plain")


class AnswerParts:
    """The pieces of an answer as they come in; `size` counts the characters of text, reasoning and calls."""

    def __init__(self) -> None:
        self.size = 0
        self.texts: list[str] = []
        self.reasons: list[str] = []
        self._given = (0, 0)

    def add(self, parts: list[str], text: str) -> None:
        parts.append(text)
        self.size += len(text)

    def take_delta(self) -> Delta | None:
        """What has come since the last time this was asked."""
        texts, reasons = self._given
        if len(self.texts) == texts and len(self.reasons) == reasons:
            return None
        self._given = (len(self.texts), len(self.reasons))
        return Delta(text="".join(self.texts[texts:]), reasoning="".join(self.reasons[reasons:]))

    def answer(self, text: str, model: str, calls: tuple[ToolCall, ...], stop: StopReason) -> Answer:
        """The whole answer. Raises InvalidAnswer where it says nothing although it ended as usual."""
        stop = "calls" if calls and stop != "length" else stop
        if not text and not calls and stop == "finished":
            raise InvalidAnswer("the answer was empty")
        return Answer(text=text, model=model, calls=calls, reasoning="".join(self.reasons), stop=stop)


class AnswerReader(Protocol):
    """Reads the data of an answer's events into its parts; `is_complete` once the protocol's last event has come."""

    is_complete: bool
    parts: AnswerParts

    def feed(self, data: bytes) -> None: ...


async def read_deltas(incoming: HttpResponse, reader: AnswerReader) -> AsyncGenerator[Delta, None]:
    """What is new after each piece from the network, however many events it held.

    An empty delta is a sign of life: bytes came, but nothing to show. Raises Oversized where it becomes too much.
    """
    longest = incoming.max_bytes or MAX_ANSWER_BYTES
    if incoming.content_type == "application/json":
        reader.feed(b"".join([piece async for piece in incoming]))
        yield reader.parts.take_delta() or Delta()
        return
    if incoming.content_type not in STREAMS:
        raise InvalidAnswer(f"the server sent {incoming.content_type} instead of an answer")
    events = EventStream()
    async for piece in incoming:
        for data in events.feed(piece):
            reader.feed(data)
        check_size(max(reader.parts.size, events.pending_bytes), longest)
        yield reader.parts.take_delta() or Delta()
        if reader.is_complete:
            await incoming.drain()
            return
    for data in events.end():
        reader.feed(data)
    if delta := reader.parts.take_delta():
        yield delta


def check_size(size: int, longest: int) -> None:
    if size > longest:
        raise answer_too_large(longest)
