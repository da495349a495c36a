"""Histories that are taken up again: old versions, more room after an end."""

from pathlib import Path

from msgspec.structs import replace

from septet.domain.events import DecisionRecorded, VersionWritten
from septet.domain.state import State
from septet.domain.teams import Budget
from septet.runtime.log import Log
from septet.tools.workspace import Workspace
from septet.wiring.session import Session


async def restore(session: Session, state: State, version: VersionWritten) -> None:
    """An old version becomes the newest one: nothing in the log is taken back."""
    number = len(state.versions) + 1
    again = replace(version, number=number, note=f"v{version.number} again, as the person asked")
    decision = DecisionRecorded(by="person", what=f"restored v{version.number}", why="on the page")
    log = Log(session.store, state)
    for event in (decision, again):
        await log.record(event)
    older = {file.path: file.sha256 for one in state.versions for file in one.files}
    await Workspace(Path(state.workspace)).show(version.files, session.blobs, gone=older)


def renewed(state: State) -> Budget:
    """As much room again as the chat began with, on top of what is used up."""
    first, spent = state.team.budget, state.spent
    return Budget(
        rounds=None if first.rounds is None else first.rounds + state.turns.get("coder", 0),
        tokens=None if first.tokens is None else first.tokens + spent.usage.total,
        cost=None if first.cost is None else first.cost + spent.cost,
        seconds=None if first.seconds is None else first.seconds + state.seconds,
    )
