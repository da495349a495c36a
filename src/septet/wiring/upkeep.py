"""Restores earlier states of a workspace, renames chats and deletes them; backups, and the space that all takes."""

import os
import re
import shutil
from pathlib import Path

from anyio import to_thread

from septet.chat.index_file import delete_index, forget_chat
from septet.chat.names import checked_name
from septet.chat.versions import version_named
from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.state import State
from septet.errors import BadUsage
from septet.ports import ChatCatalog
from septet.settings.home import Home
from septet.stores.backup import Backup, free_bytes, read_backup, vacuum, write_backup
from septet.stores.blobs import addresses_in_log, delete_unused_blobs
from septet.team.layouts import first_snapshot
from septet.wiring.forks import bring_back, layout_at
from septet.wiring.session import Session
from septet.workspace.files import Workspace
from septet.workspace.snapshots import hidden_in, recall, restore_snapshot, take_snapshot

SNAPSHOT = re.compile(r"s(\d{1,9})", re.IGNORECASE)


class RestoreResult(Value, omit_defaults=False):
    """What was restored, and the point that undoes the restore."""

    chat: str
    point: str
    undo: str


async def restore_workspace(session: Session, chat: str, point: str) -> RestoreResult:
    """Restore a snapshot (`s3`) or a version (`v2`), after taking a snapshot of the current files."""
    state = await session.state(chat)
    if state.base is not None:
        return await restore_version(session, state, point)
    workspace = Workspace(Path(state.workspace))
    manifest = snapshot_named(state, point) if SNAPSHOT.fullmatch(point) else None
    version = version_named(state, point) if manifest is None else None
    hidden = await hidden_in(workspace, first_snapshot(state), session.blobs)
    number = len(state.work.snapshots) + 1
    saved, now = await take_snapshot(workspace, hidden, session.blobs, number, f"before {point}")
    await session.store.append(chat, saved, after=None)
    if manifest is not None:
        await restore_snapshot(workspace, await recall(manifest, session.blobs), now, session.blobs)
    if version is not None:
        await workspace.write_layout(layout_at(state, version, now), session.blobs)
    return RestoreResult(chat=chat, point=point, undo=f"s{saved.number}")


async def restore_version(session: Session, state: State, point: str) -> RestoreResult:
    """With a base, make the old version the newest one; the person's folder changes when it is delivered."""
    if SNAPSHOT.fullmatch(point):
        cause = f"'{state.chat}' works on a copy of {state.workspace}, of which only versions come back"
        raise BadUsage(cause, f"septet undo {state.chat} takes back what it has delivered")
    version = version_named(state, point)
    with session.holding(state.chat):
        await bring_back(session, state, version, "asked for by septet restore")
    return RestoreResult(chat=state.chat, point=point, undo=f"v{len(state.work.versions)}")


def snapshot_named(state: State, name: str) -> str:
    number = int(name[1:])
    if not 1 <= number <= len(state.work.snapshots):
        known = [f"s1 to s{len(state.work.snapshots)}"] if state.work.snapshots else []
        known += [f"v1 to v{len(state.work.versions)}"] if state.work.versions else []
        has = f"it has {' and '.join(known)}" if known else "it has no point to go back to yet"
        raise BadUsage(f"'{state.chat}' has no snapshot '{name}'", has)
    return state.work.snapshots[number - 1].manifest


async def rename_chat_named(session: Session, chat: str, name: str) -> str:
    session.acquire(chat)
    await catalog_of(session).rename(chat, checked_name(name))
    await session.index.use(lambda index: forget_chat(index, chat))
    for apart in (session.home.artefacts, session.home.scratches):
        if await to_thread.run_sync((apart / chat).is_dir):
            await to_thread.run_sync((apart / chat).rename, apart / name)
    return f"{chat} is called {name} now"


async def remove(session: Session, chat: str) -> str:
    """Delete the chat, blobs that only it uses and, if Septet made it, its workspace. The person's folder stays."""
    session.acquire(chat)
    folder = Path((await session.state(chat)).workspace)
    await catalog_of(session).delete(chat)
    await session.index.use(lambda index: forget_chat(index, chat))
    for apart in (session.home.artefacts, session.home.scratches):
        await to_thread.run_sync(shutil.rmtree, apart / chat, True)
    freed = await to_thread.run_sync(free_blobs, session.home)
    told = "" if freed is None else f" ({pluralize(freed, 'byte')} of contents freed)"
    if not folder.is_relative_to(session.home.workspaces):
        return f"{chat} is gone{told}; its folder {folder} is yours and stays"
    await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
    return f"{chat} is gone, and its workspace with it{told}"


def catalog_of(session: Session) -> ChatCatalog:
    if session.catalog is None:
        raise BadUsage("a log on a server is only ever added to", "its chats keep their names, and stay")
    return session.catalog


async def forget_remote(session: Session, name: str) -> str:
    """Drop the note of a chat that is on a server, which keeps it; says so, or nothing where there is no such note."""
    here = {head.chat for head in await session.store.chats()}
    note = next((note for note in session.remote_chats.all() if note.chat == name and name not in here), None)
    if note is None:
        return ""
    session.remote_chats.forget(name)
    return f"{name} is no longer listed here; the chat itself stays on {note.server}"


def free_blobs(home: Home) -> int | None:
    """What no chat names; nothing while somebody is at work: the next removal does it then.

    Nothing either without our own database: another store's chats may name every blob.
    """
    if not home.database.exists():
        return None
    return delete_unused_blobs(home.blobs, lambda: addresses_in_log(home.database, home.blobs))


def back_up(home: Home, file: Path) -> Backup:
    """The chats of this machine with their contents, the facts and the examples; keys and workspaces are not in it."""
    if file.exists():
        raise BadUsage(f"{file} exists already", "name a new file")
    others = {"facts": home.facts, home.examples.name: home.examples}
    return write_backup(home.database, home.blobs, others, file)


def restore_backup(home: Home, file: Path) -> Backup:
    """Put a backup into a home without chats."""
    done = read_backup(file, home.data)
    delete_index(home.index)
    return done


class Space(Value, omit_defaults=False):
    """What a part of Septet's home takes in bytes, and how many were freed."""

    what: str
    folder: str
    size: int
    freed: int


def collect_garbage(home: Home, rewrite: bool = False) -> list[Space]:
    """Delete contents that no chat names, give the log's free space back to the disk, and measure every part."""
    freed = free_blobs(home) or 0
    unused = free_bytes(home.database)
    done = vacuum(home.database, rewrite)
    parts = {
        "log": (home.database, unused if done else 0),
        "contents": (home.blobs, freed),
        "index": (home.index, 0),
        "artefacts": (home.artefacts, 0),
        "copies of folders": (home.scratches, 0),
        "workspaces": (home.workspaces, 0),
        "environments": (home.environments, 0),
    }
    return [
        Space(what=what, folder=str(path), size=size_of(path), freed=freed)
        for what, (path, freed) in parts.items()
    ]


def size_of(path: Path) -> int:
    """Bytes of a file with the journal beside it, or of everything in a folder."""
    if not path.is_dir():
        return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    folders = os.walk(path, onerror=None)
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in folders for name in names)  # noqa: PTH118  # many files
