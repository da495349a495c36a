"""What a person sees while the team works: a line for each thing that happens, on stderr."""

import re
import sys
from contextlib import nullcontext
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from septet.chat.progress import event_line
from septet.chat.results import spending_text, time_text, turn_spending_text
from septet.common.text import printable
from septet.domain.events import PersonSpoke, Recorded, TurnOpened
from septet.domain.reduce import reduce
from septet.domain.state import State
from septet.ways.table import rounds_used

if TYPE_CHECKING:
    from septet.cli.footer import Footer

OUTCOMES = (
    (re.compile(r"✓|verdict: accept"), "green"),
    (re.compile(r"✗|[^\n]*→ (exit [1-9]|stopped)"), "red"),
    (re.compile(r"verdict: revise"), "yellow"),
)
"""How a line begins that tells an outcome, and its colour."""
MARGIN = 11
NARROW = 10


class ProgressScreen:
    """Folds what it hears, so that its footer always shows where the chat stands."""

    def __init__(self, state: State, plain: bool, verbose: bool = False) -> None:
        self.state = state
        self.verbose = verbose
        self.console = Console(file=sys.stderr, no_color=plain or None, highlight=False, emoji=False)
        self.can_move = self.console.is_terminal and not self.console.is_dumb_terminal and not plain
        self.footer: Footer | None = None
        self._opened = self._news = monotonic()

    def footer_line(self) -> str:
        """The footer's words, now: somebody may have been at work for long since anything happened."""
        now = monotonic()
        return footer_text(self.state, turn=now - self._opened, quiet=now - self._news)

    def show(self, recorded: Recorded, with_text: bool = True) -> None:
        before, self.state = self.state.plan.current, reduce(self.state, recorded)
        self._news = monotonic()
        if isinstance(recorded.event, TurnOpened):
            self._opened = self._news
        if self.footer and isinstance(recorded.event, PersonSpoke):
            self.footer.remove_queued(recorded.event.text)
        who, text = event_line(before, self.state, recorded.event, self.verbose)
        if text and with_text:
            self.say(who, text)

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


def outcome_style(line: str) -> str:
    """The colour of a line: what came of it, not who says it."""
    return next((colour for start, colour in OUTCOMES if start.match(line)), "")


def footer_text(state: State, turn: float = 0.0, quiet: float = 0.0) -> str:
    """Round, for whom one waits, what it cost, how many requirements are met.

    `turn` is how many seconds the turn has taken, `quiet` how many passed since the last event.
    """
    rounds = f"round {rounds_used(state)} of {state.budget.rounds or '∞'}"
    busy = state.floor.turn is not None and state.ended is None
    speaker = f"waiting for the {state.floor.turn.speaker}, {turn:.0f} s" if state.floor.turn and busy else ""
    total = len(state.plan.current.items) if state.plan.current else 0
    met = sum(found.passed for found in state.work.evidence.values())
    checks = f"{met}/{total} checks met" if total else ""
    return " · ".join(
        filter(
            None,
            [
                rounds,
                speaker,
                checks,
                spending_text(state),
                time_text(state, quiet if busy else 0),
                turn_spending_text(state),
            ],
        )
    )
