"""Everybody of a software team in turn, whatever the others have said: for experiments."""

from septet.ways.iterate.members import member
from septet.ways.round_robin.policy import taking_turns
from septet.ways.way import Way

WAY = Way(name="round_robin", floor=taking_turns, member=member, thinks=("planner", "coder", "reviewer"))
