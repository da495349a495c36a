"""What a person sees while the team works: a line for each thing that happens, on stderr."""

import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from septet.chat.progress import event_line
from septet.chat.results import spending_text, time_text, turn_spending_text
from septet.cli.live_text import LiveText
from septet.common.text import clip, printable
from septet.domain.events import ModelAnswered, PersonSpoke, Recorded, RunFinished, TurnOpened
from septet.domain.reduce import reduce
from septet.domain.state import State
from septet.team.evidence import earlier_outcome
from septet.ways.table import rounds_used

if TYPE_CHECKING:
    from septet.cli.footer import Footer

OUTCOMES = (
    (re.compile(r"✓|verdict: accept"), "green"),
    (re.compile(r"✗"), "red"),
    (re.compile(r"verdict: revise"), "yellow"),
)
"""How a line begins that tells an outcome, and its colour."""
MARGIN = 11
MAX_DIFF_LINES = 16
ENDS_OF_STREAMS = (ModelAnswered, RunFinished, TurnOpened)
"""After these, what was live is recorded."""
NARROW = 10


class ProgressScreen:
    """Folds what it hears, so that its footer always shows where the chat stands."""

    def __init__(self, state: State, plain: bool, verbose: bool = False) -> None:
        self.state = state
        self.verbose = verbose
        self.console = Console(file=sys.stderr, no_color=plain or None, highlight=False, emoji=False)
        self.live = LiveText(coloured=not self.console.no_color)
        self.can_move = self.console.is_terminal and not self.console.is_dumb_terminal and not plain
        self.footer: Footer | None = None
        self._opened = self._news = monotonic()

    def footer_line(self, width: int = 0) -> str:
        """The footer's words, now: somebody may have been at work for long since anything happened."""
        now = monotonic()
        return footer_text(self.state, turn=now - self._opened, quiet=now - self._news, width=width)

    def show(self, recorded: Recorded, with_text: bool = True) -> None:
        before, self.state = self.state.plan.current, reduce(self.state, recorded)
        self._news = monotonic()
        if isinstance(recorded.event, TurnOpened):
            self._opened = self._news
        if self.footer and isinstance(recorded.event, PersonSpoke):
            self.footer.remove_queued(recorded.event.text)
        who, text = event_line(before, self.state, recorded.event, self.verbose)
        if isinstance(recorded.event, ENDS_OF_STREAMS):
            self.live.end()
        if text and with_text:
            self.say(who, text)

    def show_change(self, diff: str, command: str) -> None:
        """What a version changed, in colours; of a long change the beginning."""
        lines = printable(diff).splitlines()
        hidden = len(lines) - MAX_DIFF_LINES
        with self.footer.hidden() if self.footer else nullcontext():
            for line in lines if hidden <= 1 else lines[:MAX_DIFF_LINES]:
                text = Text(clip(line, max(NARROW, self.console.width - MARGIN)), style=diff_style(line))
                self.console.print(Text(" " * MARGIN) + text, soft_wrap=True)
            if hidden > 1:
                self.console.print(Text(f"{'':{MARGIN}}… {hidden} more lines: {command}", "bright_black"))

    def say(self, who: str, text: str) -> None:
        titles = {one.name: one.title for one in self.state.team.members}
        style = "bright_black" if who == "septet" else "bold"
        name = Text.assemble((f"{printable(titles.get(who) or who):>9}  ", style))
        lines = printable(text).rstrip().splitlines() or [""]
        with self.footer.hidden() if self.footer else nullcontext():
            for part in (part for line in lines for part in self.wrap_line(line)):
                part.stylize(outcome_style(part.plain))
                self.console.print(name + part, soft_wrap=True)
                name = Text(" " * MARGIN)

    def wrap_line(self, line: str) -> list[Text]:
        """A long line in parts that fit the terminal, each indented like the first; whole where nobody watches."""
        words = line.lstrip(" ")
        indent = " " * (len(line) - len(words))
        room = self.console.width - MARGIN - len(indent)
        if not self.console.is_terminal or room < NARROW or not words:
            return [Text(line)]
        return [Text(indent + part.plain.rstrip()) for part in Text(words).wrap(self.console, room)]


def diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def outcome_style(line: str) -> str:
    """The colour of a line: what came of it, not who says it."""
    return next((colour for start, colour in OUTCOMES if start.match(line)), "")


def footer_text(state: State, turn: float = 0.0, quiet: float = 0.0, width: int = 0) -> str:
    """Round, for whom one waits, what it cost, how many requirements are met: as much as fits on one line.

    `turn` is how many seconds the turn has taken, `quiet` how many passed since the last event.
    """
    used = rounds_used(state)
    rounds = f"round {used} of {state.budget.rounds or '∞'}" if used else "before the first round"
    busy = state.floor.turn is not None and state.ended is None
    speaker = f"waiting for the {state.floor.turn.speaker}, {turn:.0f} s" if state.floor.turn and busy else ""
    total = len(state.plan.items)
    checks = f"{met_or_known(state)}/{total} checks met" if total else ""
    parts = [
        rounds,
        speaker,
        checks,
        spending_text(state) if state.spending.total.answers else "",
        time_text(state, quiet if busy else 0),
        turn_spending_text(state),
    ]
    return fitting([part for part in parts if part], width)


def met_or_known(state: State) -> int:
    """How many requirements are met, as far as the newest version is checked; else what is known of those before it."""
    known = {name: found.passed for name, found in state.work.evidence.items()}
    return sum(known.get(one.id, earlier_outcome(state, one.id)) is True for one in state.plan.items)


def fitting(parts: Sequence[str], width: int) -> str:
    """The parts in one line; the last ones are left out where the line is narrow."""
    kept = list(parts)
    while width and len(kept) > 1 and len(" · ".join(kept)) >= width:
        kept.pop()
    text = " · ".join(kept)
    return clip(text, width - 1) if width else text
