"""What the person changes in the folder while the team works on a copy: it is merged in before the next turn."""

from collections.abc import Mapping
from hashlib import sha256

from septet.common.values import Value
from septet.domain.base import FileState
from septet.domain.events import BaseMoved, VersionWritten
from septet.domain.files import FileRef, tree_of
from septet.domain.state import State
from septet.ports import Blobs
from septet.workspace.files import in_thread
from septet.workspace.listing import is_secret
from septet.workspace.merge import has_marks, merge_file
from septet.workspace.scratch import Scratch, content_of

NOTE = "with what was changed in the folder meanwhile"


class Merged(Value):
    """The newest version's files after the merge, and those of them that somebody has to look at."""

    files: tuple[FileRef, ...] = ()
    deleted: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


async def merge_edits(state: State, scratch: Scratch, blobs: Blobs) -> VersionWritten | BaseMoved | None:
    """The next event that brings the person's edits in: first a version that holds them, then the new base.

    Whoever is interrupted between the two finds the edits again, merged already.
    """
    edits = await in_thread(scratch.edits)
    if not edits:
        return None
    merged = await merge_into_version(state, edits, scratch, blobs)
    found = version_with(state, edits, merged)
    if found is not None:
        return found
    kept = [await keep_content(one, scratch, blobs) for one in edits.values()]
    return BaseMoved(changed=tuple(kept), conflicts=merged.conflicts)


def version_with(state: State, edits: Mapping[str, FileState], merged: Merged) -> VersionWritten | None:
    """A version of its own, for what was seen of the one before says nothing about it."""
    if state.work.version is None:
        return None
    moment = sha256("".join(f"{one.path}\0{one.sha256}{one.kind}\n" for one in edits.values()).encode())
    tree = tree_of(merged.files, f"base {moment.hexdigest()}")
    if tree == state.work.version.tree:
        return None
    words = f"; not merged: {', '.join(merged.conflicts)}" if merged.conflicts else ""
    return VersionWritten(
        number=len(state.work.versions) + 1,
        files=merged.files,
        deleted=merged.deleted,
        tree=tree,
        note=NOTE + words,
        found=True,
    )


async def merge_into_version(
    state: State, edits: Mapping[str, FileState], scratch: Scratch, blobs: Blobs
) -> Merged:
    version = state.work.version
    files = {file.path: file for file in (version.files if version else ())}
    deleted = list(version.deleted if version else ())
    conflicts: list[str] = []
    for path, one in edits.items():
        if path in deleted and one.sha256:
            deleted.remove(path)  # who still works on it wants to keep it
            conflicts.append(path)
        elif path in files:
            team = await blobs.get(files[path].sha256)
            merged = await in_thread(lambda one=one, team=team: merge_edit(one, team, scratch))
            if merged is None or has_marks(merged):
                conflicts.append(path)
            if merged is not None:
                files[path] = FileRef(path=path, sha256=await blobs.put(merged), size=len(merged))
    ordered = tuple(files[path] for path in sorted(files))
    return Merged(files=ordered, deleted=tuple(deleted), conflicts=tuple(conflicts))


def merge_edit(one: FileState, team: bytes, scratch: Scratch) -> bytes | None:
    """The team's file with the person's edit, marked where they disagree; None where nothing can be merged."""
    mine = content_of(scratch.origin, one)
    if not one.sha256 or one.kind == "link" or mine is None or is_secret(one.path, mine):
        return None
    return merge_file(scratch.base.read(one.path) or b"", mine, team).content


async def keep_content(one: FileState, scratch: Scratch, blobs: Blobs) -> FileState:
    """The state, its content kept as a blob unless it looks like a secret."""
    content = await in_thread(lambda: content_of(scratch.origin, one))
    if content is not None and not is_secret(one.path, content):
        await blobs.put(content)
    return one


async def apply_move(event: BaseMoved, scratch: Scratch) -> None:
    """The base as the person has it now; what has changed once more is found by the next comparison."""
    await in_thread(lambda: [scratch.take_over(one) for one in event.changed])
