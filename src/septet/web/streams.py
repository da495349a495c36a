"""Words and output while they are made, joined per speaker so that a late watcher gets them from the start."""

from typing import Literal

from septet.agents.asking import Live
from septet.domain.events import ModelAnswered, Recorded, RunFinished
from septet.domain.values import Value

Kind = Literal["text", "reasoning", "output"]
KINDS: tuple[Kind, ...] = ("text", "reasoning", "output")
KEPT = 1 << 18
"""Characters of one stream that a late watcher gets; of a longer one, the end."""


class Piece(Value, omit_defaults=False):
    """A part of a stream. `at` is where it stands there, counted as browsers count (UTF-16).

    A higher `make` says that the stream began anew: what came before it is void.
    """

    speaker: str
    kind: Kind
    make: int
    at: int
    text: str


class Stream:
    """One speaker's words or output since they began."""

    def __init__(self) -> None:
        self.make = 0
        self.length = 0
        self.unsent = ""
        self.kept = ""

    def add(self, text: str) -> None:
        self.unsent += text

    def begin(self) -> None:
        self.make += 1
        self.length = 0
        self.unsent = self.kept = ""

    def flush(self) -> tuple[int, str]:
        """What was not sent yet, and where it stands."""
        at, text = self.length, self.unsent
        self.length += units(text)
        self.kept = (self.kept + text)[-KEPT:]
        self.unsent = ""
        return at, text


class Streams:
    """Everybody's, of one chat."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, Kind], Stream] = {}
        self._changed: set[tuple[str, Kind]] = set()

    def hear(self, live: Live) -> None:
        if live.restarted:
            for kind in KINDS:
                self._begin(live.speaker, kind)
        for kind in KINDS:
            if text := getattr(live, kind):
                self._streams.setdefault((live.speaker, kind), Stream()).add(text)
                self._changed.add((live.speaker, kind))

    def settle(self, recorded: Recorded) -> None:
        """What is in the log now is no longer live."""
        match recorded.event:
            case ModelAnswered(role=role):
                self._begin(role, "text")
                self._begin(role, "reasoning")
            case RunFinished():
                for speaker, kind in list(self._streams):
                    if kind == "output":
                        self._begin(speaker, kind)
            case _:  # the beginning of a turn or a run is no mark: its first pieces may be heard before it
                pass

    def end(self) -> None:
        """Nobody speaks any more: what was begun and not recorded is void."""
        for speaker, kind in list(self._streams):
            self._begin(speaker, kind)

    def _begin(self, speaker: str, kind: Kind) -> None:
        stream = self._streams.get((speaker, kind))
        if stream is not None and (stream.length or stream.unsent):
            stream.begin()
            self._changed.discard((speaker, kind))

    def news(self) -> list[Piece]:
        """What has come since the last call."""
        pieces: list[Piece] = []
        for speaker, kind in sorted(self._changed):
            stream = self._streams[speaker, kind]
            at, text = stream.flush()
            pieces.append(Piece(speaker=speaker, kind=kind, make=stream.make, at=at, text=text))
        self._changed.clear()
        return pieces

    def so_far(self) -> list[Piece]:
        """All that was sent of what is still being made."""
        return [
            Piece(
                speaker=speaker,
                kind=kind,
                make=stream.make,
                at=stream.length - units(stream.kept),
                text=stream.kept,
            )
            for (speaker, kind), stream in self._streams.items()
            if stream.kept
        ]


def units(text: str) -> int:
    """How long a browser finds the text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
