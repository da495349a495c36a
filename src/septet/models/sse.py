"""Parses server-sent events from any split of their bytes, and gathers an answer from its parts."""

from collections.abc import AsyncGenerator
from typing import Protocol

from septet.domain.messages import Answer, Delta, StopReason, ToolCall
from septet.models.faults import InvalidAnswer
from septet.models.http import MAX_ANSWER_BYTES, HttpResponse, answer_too_large


class EventStream:
    """`feed` takes the bytes as they arrive and returns the data of each event that they complete."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._at_start = True

    @property
    def pending_bytes(self) -> int:
        """The number of bytes received of an unfinished event."""
        return sum(map(len, self._pending))

    def feed(self, piece: bytes) -> list[bytes]:
        # Only a line end can complete an event, so the pieces of a long one are joined once.
        after_return = bool(self._pending) and self._pending[-1].endswith(b"\r")
        self._pending.append(piece)
        if not after_return and b"\n" not in piece and b"\r" not in piece:
            return []
        text = b"".join(self._pending)
        if self._at_start:
            text = text.removeprefix(b"\xef\xbb\xbf")
            self._at_start = False
        # A carriage return at the very end may be the first half of CRLF.
        carriage_return = text[-1:] if text.endswith(b"\r") else b""
        if b"\r" in text:
            text = text[: len(text) - len(carriage_return)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *blocks, rest = text.split(b"\n\n")
        self._pending = [rest + carriage_return]
        return [data for block in blocks if (data := event_data(block)) is not None]

    def end(self) -> list[bytes]:
        """The last event, if the server left out only the blank line after it."""
        whole_lines = b"".join(self._pending).endswith((b"\n", b"\r"))
        return self.feed(b"\n\n") if whole_lines else []


def event_data(block: bytes) -> bytes | None:
    """The data of one event; None if it has none (a comment, or only a name)."""
    if block.startswith(b"data: ") and b"\n" not in block:
        return block[6:]
    lines = [
        line[5:].removeprefix(b" ") if line[4:5] == b":" else b""
        for line in block.split(b"\n")
        if line.startswith(b"data:") or line == b"data"
    ]
    return b"\n".join(lines) if lines else None


STREAM_TYPES = ("text/event-stream", "application/octet-stream", "text/plain")


class AnswerParts:
    """The parts of an answer as they arrive; `size` counts the characters of text, reasoning and calls."""

    def __init__(self) -> None:
        self.size = 0
        self.texts: list[str] = []
        self.reasons: list[str] = []
        self._sent = (0, 0)

    def add(self, parts: list[str], text: str) -> None:
        parts.append(text)
        self.size += len(text)

    def take_delta(self) -> Delta | None:
        """What has arrived since the last call; None if nothing."""
        text_count, reason_count = self._sent
        if len(self.texts) == text_count and len(self.reasons) == reason_count:
            return None
        self._sent = (len(self.texts), len(self.reasons))
        return Delta(text="".join(self.texts[text_count:]), reasoning="".join(self.reasons[reason_count:]))

    def answer(self, text: str, model: str, calls: tuple[ToolCall, ...], stop: StopReason) -> Answer:
        """The whole answer. Raises InvalidAnswer if it is empty although it finished normally."""
        stop = "calls" if calls and stop != "length" else stop
        if not text and not calls and stop == "finished":
            raise InvalidAnswer("the answer was empty")
        return Answer(text=text, model=model, calls=calls, reasoning="".join(self.reasons), stop=stop)


class AnswerReader(Protocol):
    """Reads the data of events into the parts of an answer; `is_complete` after the protocol's last event."""

    is_complete: bool
    parts: AnswerParts

    def feed(self, data: bytes) -> None: ...


async def read_deltas(incoming: HttpResponse, reader: AnswerReader) -> AsyncGenerator[Delta, None]:
    """Yield one delta for each piece from the network, however many events it holds.

    An empty delta is a sign of life: bytes came, but no text. Raises AnswerTooLarge.
    """
    limit = incoming.max_bytes or MAX_ANSWER_BYTES
    if incoming.content_type == "application/json":
        reader.feed(b"".join([piece async for piece in incoming]))
        yield reader.parts.take_delta() or Delta()
        return
    if incoming.content_type not in STREAM_TYPES:
        raise InvalidAnswer(f"the server sent {incoming.content_type} instead of an answer")
    events = EventStream()
    async for piece in incoming:
        for data in events.feed(piece):
            reader.feed(data)
        check_size(max(reader.parts.size, events.pending_bytes), limit)
        yield reader.parts.take_delta() or Delta()
        if reader.is_complete:
            await incoming.drain()
            return
    for data in events.end():
        reader.feed(data)
    if delta := reader.parts.take_delta():
        yield delta


def check_size(size: int, limit: int) -> None:
    if size > limit:
        raise answer_too_large(limit)
