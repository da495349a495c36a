"""Builds the scratch of a chat from its base and its log, and rebuilds it whenever the chat is resumed."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

from septet.domain.state import State
from septet.errors import LogDamaged
from septet.ports import Blobs
from septet.team.layouts import workspace_delta
from septet.workspace.base import base_content, changed_entries, read_manifest
from septet.workspace.files import in_thread
from septet.workspace.scratch import Scratch


async def open_scratch(folder: Path, state: State, blobs: Blobs) -> Scratch | None:
    """The base with the newest version and the files of its runs; None for a chat that works in place."""
    if state.base is None:
        return None
    scratch = await scratch_of(folder, state, blobs)
    await copy_base(state, scratch, blobs)
    await move_base(state, scratch, blobs)
    made = {
        path: sha256
        for path, sha256 in {**state.work.stale_artefacts, **state.work.artefacts}.items()
        if sha256
    }
    contents = {path: await content(sha256, blobs) for path, sha256 in made.items()}
    delta = workspace_delta(state)
    files = {file.path: await blobs.get(file.sha256) for file in delta.files}

    def work() -> None:
        scratch.rebuild()
        for path, kept in contents.items():
            if kept is not None:
                scratch.work.write(path, kept)
        scratch.show(delta, files)

    await in_thread(work)
    return scratch


async def copy_base(state: State, scratch: Scratch, blobs: Blobs) -> None:
    """Copy the base as the survey found it: a copy that is rebuilt later must not contain later edits."""
    if await in_thread(scratch.has_base):
        return
    archive = state.base.survey.archive if state.base else ()
    if archive and not await in_thread(scratch.origin.is_dir):
        await unpack_base(archive, scratch, blobs)
        return
    begun = bool(state.work.versions or (state.base and state.base.moved))
    folder, manifest = scratch.origin, scratch.manifest
    changed = await in_thread(lambda: changed_entries(folder, manifest)) if begun else []
    contents = {entry.path: await base_content(folder, entry, blobs) for entry in changed}
    await in_thread(lambda: scratch.copy_base(contents))


async def unpack_base(archive: Sequence[str], scratch: Scratch, blobs: Blobs) -> None:
    with TemporaryFile() as packed:
        for address in archive:
            packed.write(await blobs.get(address))
        packed.seek(0)
        await in_thread(lambda: scratch.unpack_base(packed))


async def scratch_of(folder: Path, state: State, blobs: Blobs) -> Scratch:
    """The scratch of a chat among those in the folder."""
    assert state.base is not None, "only a chat with a base has a scratch"
    address = state.base.survey.manifest
    manifest = await read_manifest(address, blobs)
    return Scratch(folder / state.chat, Path(state.workspace), manifest, address)


async def content(sha256: str, blobs: Blobs) -> bytes | None:
    """The stored content; None for files that were not stored, because they look like secrets or are too big."""
    try:
        return await blobs.get(sha256) if sha256 else b""
    except LogDamaged:
        return None


async def move_base(state: State, scratch: Scratch, blobs: Blobs) -> None:
    """Apply to the base what the log says: the person's edits, and deliveries."""
    for one in state.base.moved.values() if state.base else ():
        if await in_thread(lambda one=one: scratch.is_behind(one)):
            kept = await content(one.sha256, blobs)
            await in_thread(lambda one=one, kept=kept: scratch.move_base(one, kept))
