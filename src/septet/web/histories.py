"""Histories that are taken up again: forks, old versions, more room after an end."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from septet.chat.names import new_name
from septet.domain.events import ChatStarted, DecisionRecorded, Recorded, VersionWritten
from septet.domain.state import State
from septet.domain.teams import Budget
from septet.errors import BadUsage
from septet.runtime.log import Log
from septet.tools.workspace import Workspace
from septet.wiring.session import Session


async def fork(session: Session, chat: str, version: VersionWritten | None, seq: int) -> str:
    """A new chat whose log starts as the other one's; it has a workspace of its own."""
    start = beginning(await session.store.read(chat), version, seq)
    first = start[0].event if start else None
    if not isinstance(first, ChatStarted):
        raise BadUsage(f"'{chat}' has nothing to fork from", "name a later event")
    name = new_name(chat.rpartition("-")[0] or chat)
    copies = [
        replace(first, workspace=str(session.home.workspaces / name)),
        *(one.event for one in start[1:]),
    ]
    log = Log(session.store, State(chat=name))
    for event in copies:
        await log.record(event)
    return name


def beginning(log: Sequence[Recorded], version: VersionWritten | None, seq: int) -> Sequence[Recorded]:
    if version is not None:
        seq = next(one.seq for one in log if one.event == version)
    return [one for one in log if one.seq <= seq] if seq else log


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
