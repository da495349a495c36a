"""Coder and runner in a group chat that a manager leads: whose turn it is, and how the manager's words are read."""

import re

from septet.common.text import join_words
from septet.common.values import Value
from septet.domain.events import Terminated
from septet.domain.plans import Refusal
from septet.domain.teams import Budget, Edge, TeamSpec
from septet.team.floor import Floor, at_most, unless_stuck, with_help
from septet.team.graph import START, Edges, graph

PAIR: Edges = {
    START: (Edge(to="manager"),),
    "manager": (Edge(to="coder"),),
    "coder": (Edge(to="runner", when="unrun"), Edge(to="coder", when="nothing to run")),
    "runner": (Edge(to="coder"), Edge(to="manager", when="succeeded")),
    "exemplar": (Edge(to="coder"),),
    "proxy": (Edge(to="runner", when="unrun"), Edge(to="manager", when="nothing to run")),
}


def pair_floor(team: TeamSpec, budget: Budget) -> Floor:
    """Coder and runner in a group chat that a manager leads."""
    return at_most(
        budget.rounds, unless_stuck(team.stuck_after, with_help(team.help_after, graph(PAIR, "manager")))
    )


NEXT = re.compile(r"^\W*next\W*:\W*(?P<speaker>\S(?:.*\w)?)\W*$", re.IGNORECASE | re.MULTILINE)
TERMINATE = re.compile(r"^\W*terminate\W*:\s*(?P<summary>.+)$", re.IGNORECASE | re.MULTILINE)


class NextSpeaker(Value):
    speaker: str


def parse_manager(text: str, legal: list[str]) -> NextSpeaker | Terminated | Refusal:
    """Who goes on, or that the task is resolved; the last such line counts."""
    over = list(TERMINATE.finditer(text))
    chosen = list(NEXT.finditer(text))
    if over and (not chosen or over[-1].start() > chosen[-1].start()):
        return Terminated(summary=over[-1]["summary"].strip())
    if not chosen:
        return Refusal(reason="end the message with 'next: NAME' or 'terminate: SUMMARY'")
    speaker = chosen[-1]["speaker"]
    meant = next((name for name in legal if name.lower() == speaker.lower()), None)
    if meant is None:
        return Refusal(reason=f"'{speaker[:80]}' may not speak now, only {join_words(legal, 'or')}")
    return NextSpeaker(speaker=meant)
