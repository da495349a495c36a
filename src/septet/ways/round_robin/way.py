"""Everybody of a software team in turn, whatever the others have said: for experiments."""

from septet.ways.round_robin.policy import taking_turns
from septet.ways.way import Way, members_of

WAY = Way(
    name="round_robin",
    floor=taking_turns,
    member=members_of("septet.ways.iterate"),
    thinks=("planner", "coder", "reviewer"),
    may_have=("planner", "coder", "runner", "reviewer", "proxy", "exemplar"),
)
