"""Forks a chat into a new one with its own workspace, and makes an old version the newest."""

from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread
from msgspec.structs import replace

from septet.chat.names import alternative_names, checked_name
from septet.chat.versions import version_named
from septet.common.values import Value
from septet.domain.base import FileState
from septet.domain.events import (
    BaseEvent,
    ChatStarted,
    DecisionRecorded,
    Event,
    PackagesInstalled,
    Recorded,
    VersionWritten,
)
from septet.domain.files import FileRef, Layout
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.errors import BadUsage
from septet.runtime.log import Log
from septet.team.layouts import first_snapshot, layout_of
from septet.wiring.session import Session
from septet.workspace.files import Workspace, in_thread, make_folder
from septet.workspace.snapshots import Snapshot, hidden_in, recall, restore_snapshot, take_snapshot


class ForkResult(Value, omit_defaults=False):
    """The new chat, its starting point, and the command that continues it."""

    chat: str
    origin: str
    version: int
    workspace: str
    next: str


async def fork_chat(
    session: Session, chat: str, version: VersionWritten | None = None, seq: int = 0, name: str = ""
) -> str:
    """Fork up to that version, that event or the end. Files are written before the log."""
    start = log_prefix(await session.store.read(chat), version, seq)
    first = start[0].event if start else None
    if not isinstance(first, ChatStarted):
        raise BadUsage(f"'{chat}' has nothing to fork from", "name a later event")
    taken = {head.chat for head in await session.store.chats()}
    candidates = [checked_name(name)] if name else alternative_names(chat)
    folders = (session.home.workspaces / one for one in candidates if one not in taken)
    folder = await to_thread.run_sync(lambda: next((one for one in folders if not one.exists()), None))
    if folder is None:
        raise BadUsage(f"there is a chat or a workspace '{name}' already", "choose another name with -n")
    new = folder.name
    await fill_workspace(session, fold(start), Workspace(folder))
    start = [one for one in start if not isinstance(one.event, BaseEvent)]  # the fork has its own folder
    log = Log(session.store, State(chat=new))
    ours = replace(first, workspace=str(folder), existing=False)
    for event in (ours, *(event_for_fork(one.event) for one in start[1:])):
        await log.record(event)
    return new


async def fork_named(session: Session, chat: str, version: str | None, name: str) -> ForkResult:
    """Fork at a version by its name, or at the end."""
    origin = await session.state(chat)
    wanted = None if version is None else version_named(origin, version)
    state = await session.state(await fork_chat(session, chat, wanted, name=name))
    words = " 'what shall be different'" if state.ended else ""
    return ForkResult(
        chat=state.chat,
        origin=chat,
        version=state.work.version.number if state.work.version else 0,
        workspace=state.workspace,
        next=f"septet resume {state.chat}{words}",
    )


def log_prefix(log: Sequence[Recorded], version: VersionWritten | None, seq: int) -> Sequence[Recorded]:
    if version is not None:
        seq = next(one.seq for one in log if one.event == version)
    return [one for one in log if one.seq <= seq] if seq else log


def event_for_fork(event: Event) -> Event:
    """Packages are installed per workspace: mark them as approved but not installed in the new one."""
    if isinstance(event, PackagesInstalled):
        return replace(event, installation=replace(event.installation, installed=()))
    return event


async def fill_workspace(session: Session, state: State, workspace: Workspace) -> None:
    """Fill the workspace with the base or newest snapshot, the newest version and the files of its runs."""
    if state.base is not None:
        scratch = (await session.delivery(state)).scratch
        await in_thread(lambda: (make_folder(workspace.root), scratch.fill(workspace.root)))
    elif state.work.snapshots:
        newest = await recall(state.work.snapshots[-1].manifest, session.blobs)
        await restore_snapshot(workspace, newest, Snapshot(), session.blobs)
    if state.work.version is None:
        return
    made = [
        FileRef(path=path, sha256=sha256, size=0) for path, sha256 in state.work.artefacts.items() if sha256
    ]
    layout = layout_of(state, mirror=True)
    await workspace.write_layout(replace(layout, files=(*made, *layout.files)), session.blobs)
    for path in state.work.version.deleted:
        await in_thread(lambda path=path: workspace.root.joinpath(path).unlink(missing_ok=True))


async def bring_back(session: Session, state: State, version: VersionWritten, why: str) -> None:
    """Make an old version the newest one: the log only grows, and a snapshot of the folder is taken first."""
    if state.base is not None:
        log = Log(session.store, state)
        for event in again(state, with_delivered_files(state, version), why):
            await log.record(event)
        return
    workspace = Workspace(Path(state.workspace))
    hidden = await hidden_in(workspace, first_snapshot(state), session.blobs)
    count = len(state.work.snapshots) + 1
    kept, now = await take_snapshot(workspace, hidden, session.blobs, count, f"before v{version.number}")
    log = Log(session.store, state)
    for event in (kept, *again(state, version, why)):
        await log.record(event)
    await workspace.write_layout(layout_at(log.state, version, now), session.blobs)


def with_delivered_files(state: State, version: VersionWritten) -> VersionWritten:
    """The version with what later ones have delivered as it was before: else that would stay in the folder."""
    before: dict[str, FileState] = {}
    for delivery in state.base.deliveries if state.base else ():
        for one in delivery.files:
            if one.how != "conflict" and not delivery.branch:
                before.setdefault(one.path, one.base_before or one.before)
    known = {*version.deleted, *(file.path for file in version.files)}
    others = [one for path, one in sorted(before.items()) if path not in known and one.kind != "link"]
    back = [FileRef(path=one.path, sha256=one.sha256, size=one.size) for one in others if one.sha256]
    gone = [one.path for one in others if not one.sha256]
    return replace(version, files=(*version.files, *back), deleted=(*version.deleted, *gone))


def again(state: State, version: VersionWritten, why: str) -> tuple[Event, Event]:
    """Record the person's request, and the version again."""
    note = f"v{version.number} again, as the person asked"
    decision = DecisionRecorded(by="person", what=f"restored v{version.number}", why=why)
    return decision, replace(version, number=len(state.work.versions) + 1, note=note)


def layout_at(state: State, version: VersionWritten, now: Snapshot) -> Layout:
    """That version; besides what the team wrote, only what was just kept is replaced."""
    layout = layout_of(state)
    kept = {path: (entry.sha256,) for path, entry in now.files().items()}
    team = {
        file.path: (*kept.get(file.path, ()), file.sha256)
        for one in state.work.versions
        for file in one.files
    }
    return Layout(files=version.files, removable=layout.removable, replaceable={**kept, **team})
