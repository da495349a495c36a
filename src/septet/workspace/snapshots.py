"""Takes and restores snapshots of a workspace: files, links and empty folders, with contents as blobs.

Caches, environments, the repository, what git ignores and what looks like a secret are neither stored nor restored,
nor is anything but files, links and folders.
"""

import os
import stat
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.events import SnapshotTaken
from septet.errors import LogDamaged
from septet.ports import Blobs
from septet.workspace.files import (
    FILE_FLAGS,
    MAX_FILE_BYTES,
    Workspace,
    depth,
    in_thread,
    make_folder,
    path_and_parents,
)
from septet.workspace.listing import FolderEntry, ignored_paths, is_secret, list_folder

MOST_BYTES = 1 << 30
"""Total bytes of a snapshot's contents; further files are listed, and not changed by a restore."""
MOST_NAMES = 100
TOLD_NAMES = 3


class Snapshot(Value):
    """`ignored` and `secrets` were there and not read: a restore does not touch them.

    Where it is not `whole`, the folder held more than is listed, and a restore removes nothing.
    """

    entries: tuple[FolderEntry, ...] = ()
    ignored: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    whole: bool = True

    def is_left_out(self, path: str) -> bool:
        return not path_and_parents(path).isdisjoint((*self.ignored, *self.secrets))

    def files(self) -> dict[str, FolderEntry]:
        """The entries that can be restored."""
        return {entry.path: entry for entry in self.entries if entry.kind == "file" and entry.sha256}


DECODER = msgspec.json.Decoder(Snapshot)


async def snapshot_of(workspace: Workspace, hidden: Collection[str], blobs: Blobs) -> Snapshot:
    """List all entries that are neither `hidden` nor secrets, and store their contents as blobs."""
    found = await in_thread(lambda: list_folder(workspace.root, hidden))
    room = MOST_BYTES
    entries: list[FolderEntry] = []
    secrets = list(found.secrets)
    for entry in found.entries:
        if entry.kind == "odd":
            continue
        small = entry.kind == "file" and entry.size <= min(MAX_FILE_BYTES, room)
        content = await workspace.content(entry.path) if small else None
        if content is None:
            entries.append(entry)
        elif is_secret(entry.path, content):
            secrets.append(entry.path)
        else:
            room -= len(content)
            entries.append(replace(entry, sha256=await blobs.put(content), size=len(content)))
    return Snapshot(
        entries=tuple(entries), ignored=found.ignored, secrets=tuple(sorted(secrets)), whole=found.whole
    )


async def take_snapshot(
    workspace: Workspace, hidden: Collection[str], blobs: Blobs, number: int, note: str = ""
) -> tuple[SnapshotTaken, Snapshot]:
    """A snapshot and the event that records it."""
    snapshot = await snapshot_of(workspace, hidden, blobs)
    event = SnapshotTaken(
        number=number,
        manifest=await blobs.put(msgspec.json.encode(snapshot)),
        entries=len(snapshot.entries),
        note=note,
        folder=str(workspace.root),
        files=len(snapshot.files()),
        ignored=len(snapshot.ignored),
        secrets=snapshot.secrets[:MOST_NAMES],
    )
    return event, snapshot


async def hidden_in(workspace: Workspace, first: SnapshotTaken | None, blobs: Blobs) -> set[str]:
    """What git ignores now or did at the first snapshot: a program cannot reveal a file by changing the rules."""
    before = (await recall(first.manifest, blobs)).ignored if first else ()
    return await in_thread(lambda: ignored_paths(workspace.root)) | set(before)


async def recall(address: str, blobs: Blobs) -> Snapshot:
    try:
        return DECODER.decode(await blobs.get(address))
    except msgspec.MsgspecError as error:
        raise LogDamaged(f"the snapshot {address[:12]} cannot be read", "restore another one") from error


async def restore_snapshot(workspace: Workspace, snapshot: Snapshot, now: Snapshot, blobs: Blobs) -> None:
    """Restore the workspace. Only what `now`, the snapshot just taken, could bring back is removed."""
    contents = {entry.sha256: await blobs.get(entry.sha256) for entry in snapshot.entries if entry.sha256}

    def work() -> None:
        make_folder(workspace.root)
        kept = now.files()
        wanted = {entry.path: entry.kind for entry in snapshot.entries}
        there = list_folder(workspace.root, (*now.ignored, *snapshot.ignored)).entries
        for entry in sorted(there, key=lambda one: depth(one.path), reverse=True):
            lost = entry.kind == "file" and entry.path not in kept
            if not lost and must_go(entry, wanted, snapshot):
                erase(workspace, entry)
        for entry in snapshot.entries:
            if not workspace.digest(entry.path) or entry.path in kept:
                put_entry(workspace, entry, contents)

    await in_thread(work)


def must_go(entry: FolderEntry, wanted: dict[str, str], snapshot: Snapshot) -> bool:
    if entry.path in wanted:
        return wanted[entry.path] != entry.kind
    return snapshot.whole and not snapshot.is_left_out(entry.path)


def erase(workspace: Workspace, entry: FolderEntry) -> None:
    with suppress(OSError), workspace.folder_of(entry.path) as (folder, name):
        remove: Callable[..., None] = os.rmdir if entry.kind == "folder" else os.unlink
        remove(name, dir_fd=folder)


def put_entry(workspace: Workspace, entry: FolderEntry, contents: dict[str, bytes]) -> None:
    if entry.kind == "folder":
        with workspace.folder_of(entry.path, make=True) as (folder, name), suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=folder)
    elif entry.kind == "link":
        put_link(workspace, entry)
    elif entry.sha256:
        put_file(workspace, entry, contents[entry.sha256])


def put_link(workspace: Workspace, entry: FolderEntry) -> None:
    with workspace.folder_of(entry.path, make=True) as (folder, name):
        with suppress(OSError):
            if os.readlink(name, dir_fd=folder) == entry.target:
                return
            os.unlink(name, dir_fd=folder)
        os.symlink(entry.target, name, dir_fd=folder)


def put_file(workspace: Workspace, entry: FolderEntry, content: bytes) -> None:
    if workspace.digest(entry.path) != entry.sha256:
        workspace.write(entry.path, content)
    with workspace.folder_of(entry.path) as (folder, name):
        handle = os.open(name, FILE_FLAGS, dir_fd=folder)
        try:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            if bool(mode & stat.S_IXUSR) != entry.executable:
                os.fchmod(handle, mode | 0o111 if entry.executable else mode & ~0o111)
        finally:
            os.close(handle)


def read_words(event: SnapshotTaken) -> str:
    """Describe what the snapshot contains, and what it leaves out."""
    left = [f"{event.ignored} ignored" if event.ignored else "", secret_words(event.secrets)]
    out = ", ".join(filter(None, left))
    return f"reads {pluralize(event.files, 'file')} of {event.folder}" + (
        f"; leaves out {out}" if out else ""
    )


def secret_words(secrets: Sequence[str]) -> str:
    """Nothing where there are none."""
    if not secrets:
        return ""
    names = ", ".join(secrets[:TOLD_NAMES]) + (", …" if len(secrets) > TOLD_NAMES else "")
    what = "looks like a secret" if len(secrets) == 1 else "look like secrets"
    return f"{len(secrets)} that {what} ({names})"
