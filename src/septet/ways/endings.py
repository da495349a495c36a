"""Verifies from the log how a chat ended: the stored end alone is only a claim. Pure."""

from septet.domain.events import ChatEnded
from septet.domain.state import State
from septet.domain.teams import EndReason
from septet.errors import BadConfig
from septet.team.floor import End, Move
from septet.ways.table import floor_for

FINISHED: tuple[EndReason, ...] = ("done", "accepted", "answered", "rounds")
"""Ends that must follow from the log, because they promise something."""


def ending(state: State) -> ChatEnded | None:
    """How the chat ended; `claimed` if its log does not prove that it is finished. None while it goes on."""
    said, before = state.ended, state.before_end
    if said is None or before is None or said.reason not in FINISHED:
        return said
    if state.work.version != before.work.version:
        return ChatEnded(reason="claimed", detail="another version was written after the end", by=said.by)
    found = due(before)
    if isinstance(found, End) and (found.reason in FINISHED or found.reason == "claimed"):
        return ChatEnded(reason=found.reason, detail=found.detail, by=said.by)
    return ChatEnded(reason="claimed", detail=in_words(found), by=said.by)


def is_over(state: State) -> bool:
    """Whether nothing is left to do unless the person asks for more: it is finished, or its manager says so."""
    ended = ending(state)
    if ended is None or ended.reason == "accepted":
        return False
    return ended.reason in FINISHED or (ended.reason == "claimed" and state.floor.termination is not None)


def is_finished(state: State) -> bool:
    """Whether the work is finished, by the checks or because the person accepted it."""
    ended = ending(state)
    return is_over(state) or (ended is not None and ended.reason == "accepted")


def due(state: State) -> Move | None:
    """The next move by the team's own policy; None if the policy is not known here."""
    try:
        return floor_for(state.team, state.budget)(state)
    except BadConfig:
        return None


def in_words(move: Move | None) -> str:
    """Describe the move that was due instead of the claimed end."""
    if move is None:
        return "its team cannot be judged here"
    return move.detail if isinstance(move, End) else f"it was the {move.speaker}'s turn"
