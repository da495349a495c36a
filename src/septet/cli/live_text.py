"""What is being said or printed right now: the last lines of it above the footer, code in its colours."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from io import StringIO

import msgspec
from rich.console import Console
from rich.text import Text

from septet.agents.ask import Live
from septet.common.text import printable
from septet.ports import BusMessage

MAX_KEPT = 20_000
"""Characters: more than fit on any screen."""
FENCE = re.compile(r" {0,3}(?:```+|~~~+)(.*)")
DECODER = msgspec.json.Decoder(Live)


class LiveText:
    """The text that one speaker is producing; it ends when it is recorded."""

    def __init__(self, coloured: bool = True) -> None:
        self.text = ""
        self.speaker = ""
        self._coloured = coloured

    def add(self, piece: Live) -> None:
        text = piece.text or piece.output
        if piece.restarted or (text and piece.speaker != self.speaker):
            self.text = ""
        if text:
            self.speaker = piece.speaker
            self.text = (self.text + text)[-MAX_KEPT:]

    def end(self) -> None:
        self.text = ""

    async def follow(self, pieces: AsyncIterator[BusMessage], redraw: Callable[[], None]) -> None:
        async for piece in pieces:
            self.add(DECODER.decode(piece.message))
            redraw()

    def screen_text(self, width: int, height: int) -> str:
        """The last lines, cut to the width, with control sequences for colours only."""
        if not self.text.strip() or height < 1:
            return ""
        lines = printable(self.text).rstrip("\n").split("\n")
        first = max(0, len(lines) - height)
        info = fence_at(lines[:first])
        made = Text()
        for line in lines[first:]:
            fence = FENCE.match(line)
            cut = line[: max(1, width - 1)]
            if fence or not info:
                made.append(cut, "bright_black")
            else:
                made.append_text(coloured_code(cut, info))
            made.append("\n")
            if fence:
                info = "" if info else fence[1].strip() or "text"
        made.rstrip()
        return self._control_sequences(made, width)

    def _control_sequences(self, text: Text, width: int) -> str:
        system = "standard" if self._coloured else None
        console = Console(
            file=StringIO(), force_terminal=self._coloured, color_system=system, width=width, highlight=False
        )
        with console.capture() as captured:
            console.print(text, soft_wrap=True, end="")
        return captured.get()


def fence_at(lines: Sequence[str]) -> str:
    """What stands behind the fence of the code that is open after these lines; empty outside of code."""
    info = ""
    for line in lines:
        if fence := FENCE.match(line):
            info = "" if info else fence[1].strip() or "text"
    return info


def coloured_code(line: str, info: str) -> Text:
    """A line of code; `info` is what stands behind the fence: a language, and perhaps a path."""
    from rich.syntax import Syntax

    first, _, path = info.partition(" ")
    lexer = Syntax.guess_lexer(path) if path else first
    text = Syntax("", lexer, theme="ansi_dark").highlight(line)
    text.rstrip()
    return text
