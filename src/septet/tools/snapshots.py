"""The whole workspace as a list of blobs, and back again byte by byte: files, links and empty folders.

Caches, environments and the repository are left alone both ways; what is no file, link or folder is not kept.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Literal

import msgspec

from septet.domain.values import Value
from septet.errors import LogDamaged
from septet.ports import Blobs
from septet.tools.workspace import FOLDER, PLAIN, Workspace, in_thread, make_folder

LEFT_ALONE = {
    ".git",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".pytest_cache",
    ".ruff_cache",
    ".mypy_cache",
}
LARGEST = 64 << 20
"""Bytes of a file that is kept; a larger one is listed, and left as it is by a restore."""
MOST = 20_000


class Entry(Value):
    """Something in the workspace. `sha256` is empty for a file that was too large to keep."""

    path: str
    kind: Literal["file", "link", "folder"]
    sha256: str = ""
    size: int = 0
    executable: bool = False
    target: str = ""


class Snapshot(Value):
    entries: tuple[Entry, ...] = ()


DECODER = msgspec.json.Decoder(Snapshot)


async def take(workspace: Workspace, blobs: Blobs) -> Snapshot:
    """Every entry, the contents kept as blobs."""
    found = await in_thread(lambda: list(walk(workspace)))
    return Snapshot(entries=tuple([await kept(entry, workspace, blobs) for entry in found]))


async def kept(entry: Entry, workspace: Workspace, blobs: Blobs) -> Entry:
    if entry.kind != "file" or entry.size > LARGEST:
        return entry
    content = await workspace.content(entry.path)
    if content is None:
        return entry
    return Entry(
        path=entry.path,
        kind="file",
        sha256=await blobs.put(content),
        size=len(content),
        executable=entry.executable,
    )


async def keep(snapshot: Snapshot, blobs: Blobs) -> str:
    """The address of the snapshot itself."""
    return await blobs.put(msgspec.json.encode(snapshot))


async def recall(address: str, blobs: Blobs) -> Snapshot:
    try:
        return DECODER.decode(await blobs.get(address))
    except msgspec.MsgspecError as error:
        raise LogDamaged(f"the snapshot {address[:12]} cannot be read", "restore another one") from error


async def restore(workspace: Workspace, snapshot: Snapshot, blobs: Blobs) -> None:
    """Make the workspace what it was."""
    contents = {entry.sha256: await blobs.get(entry.sha256) for entry in snapshot.entries if entry.sha256}

    def work() -> None:
        make_folder(workspace.root)
        wanted = {entry.path: entry for entry in snapshot.entries}
        for entry in reversed(list(walk(workspace, odd=True))):
            if entry.path not in wanted or wanted[entry.path].kind != entry.kind:
                erase(workspace, entry)
        for entry in snapshot.entries:
            put(workspace, entry, contents)

    await in_thread(work)


def walk(workspace: Workspace, odd: bool = False) -> Iterator[Entry]:
    """Everything beneath the root, parents first, links not followed; `odd` lists pipes and the like too."""
    if not workspace.root.exists():
        return
    root = os.open(workspace.root, FOLDER & ~os.O_NOFOLLOW)
    try:
        for count, entry in enumerate(beneath(root, "", odd)):
            if count >= MOST:
                raise OSError(0, f"it holds more than {MOST} entries", str(workspace.root))
            yield entry
    finally:
        os.close(root)


def beneath(folder: int, prefix: str, odd: bool) -> Iterator[Entry]:
    for name in sorted(os.listdir(folder)):
        if name in LEFT_ALONE or any(0xD800 <= ord(sign) < 0xE000 for sign in name):
            continue
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(state.st_mode):
            yield Entry(path=prefix + name, kind="folder")
            with suppress(FileNotFoundError):
                deeper = os.open(name, FOLDER, dir_fd=folder)
                try:
                    yield from beneath(deeper, f"{prefix}{name}/", odd)
                finally:
                    os.close(deeper)
        elif found := leaf(folder, name, prefix, state, odd):
            yield found


def leaf(folder: int, name: str, prefix: str, state: os.stat_result, odd: bool) -> Entry | None:
    if stat.S_ISLNK(state.st_mode):
        return Entry(path=prefix + name, kind="link", target=os.readlink(name, dir_fd=folder))
    if stat.S_ISREG(state.st_mode) or odd:
        executable = bool(state.st_mode & stat.S_IXUSR)
        return Entry(path=prefix + name, kind="file", size=state.st_size, executable=executable)
    return None


def erase(workspace: Workspace, entry: Entry) -> None:
    with suppress(OSError), workspace.folder_of(entry.path) as (folder, name):
        remove: Callable[..., None] = os.rmdir if entry.kind == "folder" else os.unlink
        remove(name, dir_fd=folder)


def put(workspace: Workspace, entry: Entry, contents: dict[str, bytes]) -> None:
    if entry.kind == "folder":
        with workspace.folder_of(entry.path) as (folder, name), suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=folder)
    elif entry.kind == "link":
        put_link(workspace, entry)
    elif entry.sha256:
        put_file(workspace, entry, contents[entry.sha256])


def put_link(workspace: Workspace, entry: Entry) -> None:
    with workspace.folder_of(entry.path) as (folder, name):
        with suppress(OSError):
            if os.readlink(name, dir_fd=folder) == entry.target:
                return
            os.unlink(name, dir_fd=folder)
        os.symlink(entry.target, name, dir_fd=folder)


def put_file(workspace: Workspace, entry: Entry, content: bytes) -> None:
    if workspace.digest(entry.path) != entry.sha256:
        workspace.write(entry.path, content)
    with workspace.folder_of(entry.path) as (folder, name):
        handle = os.open(name, PLAIN, dir_fd=folder)
        try:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            if bool(mode & stat.S_IXUSR) != entry.executable:
                os.fchmod(handle, mode | 0o111 if entry.executable else mode & ~0o111)
        finally:
            os.close(handle)
