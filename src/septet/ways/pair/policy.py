"""Coder and runner in a group chat that a manager leads: decides who speaks next, and parses the manager's replies."""

import re
from itertools import takewhile

from septet.common.text import join_words
from septet.common.values import Value
from septet.domain.events import Terminated
from septet.domain.plans import CHECK, Judged, Plan, Refusal, Requirement, parse_check
from septet.domain.state import State
from septet.domain.teams import Budget, Edge, TeamSpec
from septet.team.evidence import change_problems, evidence_report
from septet.team.floor import End, Floor, Move, at_most, unless_stuck, with_help
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
    """The floor policy: coder and runner in a group chat that a manager leads."""
    led = with_proof(graph(PAIR, "manager"))
    return at_most(budget.rounds, unless_stuck(team.stuck_after, with_help(team.help_after, led)))


def with_proof(floor: Floor) -> Floor:
    """End as done instead of claimed if the checks of the manager's task passed."""

    def next_move(state: State) -> Move:
        move = floor(state)
        claimed = isinstance(move, End) and move.reason == "claimed"
        return End(reason="done", detail="every check passed") if claimed and meets_task(state) else move

    return next_move


def meets_task(state: State) -> bool:
    """Whether every check of the manager's task holds for the newest version."""
    lines = evidence_report(state)
    return bool(lines) and all(line.is_met for line in lines) and not change_problems(state)


def parse_task_checks(text: str) -> Plan | Refusal | None:
    """Parse the checks of the manager's task, one line `check: …` each; None if it has none."""
    checks = [found["check"] for found in map(CHECK.match, text.splitlines()) if found and found["check"]]
    read = [parse_check(one) for one in checks]
    if wrong := next((one for one in read if isinstance(one, Refusal | Judged)), None):
        return (
            wrong if isinstance(wrong, Refusal) else Refusal(reason="nobody judges here; name another check")
        )
    own = (
        line.strip() for line in text.strip().splitlines() if not CHECK.match(line) and not NEXT.match(line)
    )
    task = " ".join(takewhile(bool, own)) or "the task"
    items = [
        Requirement(id=f"P{number}", text=task, check=one)
        for number, one in enumerate(read, start=1)
        if not isinstance(one, Refusal)
    ]
    return Plan(items=tuple(items)) if items else None


NEXT = re.compile(r"^\W*next\W*:\W*(?P<speaker>\S(?:.*\w)?)\W*$", re.IGNORECASE | re.MULTILINE)
TERMINATE = re.compile(r"^\W*terminate\W*:\s*(?P<summary>.+)$", re.IGNORECASE | re.MULTILINE)


class NextSpeaker(Value):
    speaker: str


def parse_manager(text: str, legal: list[str]) -> NextSpeaker | Terminated | Refusal:
    """Parse the manager's choice: the next speaker, or that the task is done; the last such line counts."""
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
