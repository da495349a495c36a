"""The replies of a mock model server, the faults that it can simulate, and the requests that it received."""

from collections.abc import Callable, Mapping
from typing import Literal
from zlib import crc32

import msgspec

from septet.common.values import Value
from septet.domain.messages import StopReason, ToolCall, Usage

Fault = Literal[
    "rate limited",
    "server error",
    "unavailable",
    "context too long",
    "reset",
    "reset midway",
    "truncated",
    "malformed",
    "html",
    "no choices",
    "null content",
    "bad arguments",
    "stall",
    "stall midway",
    "no finish reason",
    "filtered",
]

Feature = Literal["tools", "schema", "images"]
FEATURES: frozenset[Feature] = frozenset({"tools", "schema", "images"})


class Reply(Value):
    """One answer of the server: sent `piece` characters at a time with a `pause` between them, after a `delay`; both in
    seconds.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    usage: Usage = Usage(prompt=11, cached=3, completion=7)
    stop: StopReason = "finished"
    piece: int = 8
    pause: float = 0.0
    delay: float = 0.0

    @property
    def ending(self) -> StopReason:
        """The stop reason to report; a reply with calls can be truncated, too."""
        return "calls" if self.calls and self.stop == "finished" else self.stop


class ReceivedRequest(Value):
    """A request as it came over the socket; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    number: int

    @property
    def fields(self) -> dict[str, object]:
        return msgspec.json.decode(self.body, type=dict[str, object]) if self.body else {}

    @property
    def messages(self) -> list[dict[str, object]]:
        return msgspec.convert(self.fields.get("messages", []), list[dict[str, object]])


Script = Callable[[ReceivedRequest], Reply]
Embed = Callable[[str], list[float]]
DIMENSIONS = 256


def in_order(*replies: Reply) -> Script:
    """Answer the n-th request with the n-th reply; the last reply repeats."""
    return lambda request: replies[min(request.number, len(replies)) - 1]


def echo(request: ReceivedRequest) -> Reply:
    """Reply with the text of the last message."""
    return Reply(text=str(request.messages[-1].get("content", "")) if request.messages else "")


def bag_of_words(text: str) -> list[float]:
    """Embed a text as word counts, so that texts with the same words are similar."""
    vector = [0.0] * DIMENSIONS
    for word in text.lower().split():
        vector[crc32(word.encode()) % DIMENSIONS] += 1.0
    return vector
