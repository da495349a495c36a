"""Protects the person's files: takes a snapshot of the folder, merges the person's edits, refuses overwrites."""

import re
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256

from septet.agents.run_context import RunContext
from septet.common.values import Value
from septet.domain.base import FileState
from septet.domain.events import BaseMoved, Event, ReplyRefused, SnapshotTaken, VersionWritten
from septet.domain.files import FileRef, is_expected, tree_of
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Blobs, Record
from septet.team.layouts import is_foreign
from septet.workspace.delivery import has_marks, merge_file
from septet.workspace.files import in_thread, path_and_parents, path_problem
from septet.workspace.listing import is_secret, text_of_content
from septet.workspace.scratch import Scratch, content_of
from septet.workspace.snapshots import take_snapshot

NOTE = "with what was changed in the folder meanwhile"


class Merged(Value):
    """The newest version's files after the merge, and those with conflicts."""

    files: tuple[FileRef, ...] = ()
    deleted: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


async def merge_edits(state: State, scratch: Scratch, blobs: Blobs) -> VersionWritten | BaseMoved | None:
    """The next event that merges the person's edits: first a version with the edits, then the new base.

    After an interruption between the two, the edits are found again and are already merged.
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
    """A new version with the merged files, because evidence for the one before does not apply to it."""
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
            deleted.remove(path)  # the person still edits the file, and so wants to keep it
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
    """The team's file with the person's edit and conflict markers; None if it cannot be merged."""
    mine = content_of(scratch.origin, one)
    if not one.sha256 or one.kind == "link" or mine is None or scratch.is_secret(one.path, mine):
        return None
    return merge_file(scratch.base.read(one.path) or b"", mine, team).content


async def keep_content(one: FileState, scratch: Scratch, blobs: Blobs) -> FileState:
    """Store the file's content as a blob, unless it looks like a secret."""
    content = await in_thread(lambda: content_of(scratch.origin, one))
    if content is not None and not scratch.is_secret(one.path, content):
        await blobs.put(content)
    return one


async def apply_move(event: BaseMoved, scratch: Scratch) -> None:
    """Update the base to the person's files; later changes are found by the next comparison."""
    await in_thread(lambda: [scratch.take_over(one) for one in event.changed])


LONGEST_SHOWN = 64 << 10
"""Bytes of a file that a refusal shows; a member could not send a longer one again."""
MOST_SHOWN = 128 << 10
"""Bytes of all files that one refusal shows; the next refusal shows the others."""


def with_folder_protection(agent: Agent, run_context: RunContext, *, runs: bool = False) -> Agent:
    """Before the member's turn, take a snapshot of a folder in use, and record the person's changes as a version.

    A member that `runs` programs continues with that version; any other member's turn ends, since it must be run first.
    """

    async def turn(state: State, record: Record) -> Event | None:
        for event in await events_before_turn(state, run_context):
            if isinstance(event, VersionWritten) and not runs:
                return event
            state = await record(event)
        return await agent(state, record)

    return with_edits_merged(turn, run_context, runs=runs) if run_context.scratch is not None else turn


def with_edits_merged(agent: Agent, run_context: RunContext, *, runs: bool = False) -> Agent:
    """Before the member's turn, merge what the person changed in the folder, of which the team has a copy."""

    async def turn(state: State, record: Record) -> Event | None:
        while (event := await merged_edit(state, run_context)) is not None:
            if isinstance(event, VersionWritten) and not runs:
                return event
            state = await record(event)
            if isinstance(event, BaseMoved) and run_context.scratch is not None:
                await apply_move(event, run_context.scratch)
                await run_context.write_newest(state)
        return await agent(state, record)

    return turn


def has_begun(state: State) -> bool:
    """Whether the turn has events already, because it continues after a crash."""
    turn = state.floor.turn
    return turn is None or turn.closed or bool(turn.answers or turn.calls)


async def merged_edit(state: State, run_context: RunContext) -> VersionWritten | BaseMoved | None:
    """The next event that merges the person's changes into the copy that the team works in."""
    if run_context.scratch is None or (has_begun(state) and not after_found(state)):
        return None
    return await merge_edits(state, run_context.scratch, run_context.blobs)


def after_found(state: State) -> bool:
    """Whether the runner's turn has only recorded the person's changes so far."""
    return state.floor.turn is not None and state.work.version is not None and state.work.version.found


async def events_before_turn(state: State, run_context: RunContext) -> list[SnapshotTaken | VersionWritten]:
    """The events to record before a turn begins; none if it continues after a crash."""
    if has_begun(state) or run_context.mirror or run_context.scratch is not None:
        return []
    events: list[SnapshotTaken | VersionWritten] = []
    if state.existing and not state.work.snapshots and not state.work.versions:
        hidden = await run_context.hidden_paths(state)
        events.append(
            (
                await take_snapshot(
                    run_context.workspace, hidden, run_context.blobs, 1, "before the first write"
                )
            )[0]
        )
    if (found := await version_found(state, run_context)) is not None:
        events.append(found)
    return events


async def version_found(state: State, run_context: RunContext) -> VersionWritten | None:
    """The newest version with the person's edits; without files that the person deleted or that cannot be read.

    If none of its files is left, the person edited nothing: the folder must be filled again.
    """
    files = {file.path: file for file in state.work.files}
    contents = {path: await run_context.workspace.content(path) for path in files}
    if all(content is None for content in contents.values()):
        return None
    for path, content in contents.items():
        if content is None and not is_expected(state.work.expected_digests, path, ""):
            files.pop(path)
        elif content is not None and is_foreign(state, path, sha256(content).hexdigest()):
            files.pop(path)
            if text_of_content(content) is not None and not is_secret(path, content):
                files[path] = FileRef(
                    path=path, sha256=await run_context.blobs.put(content), size=len(content)
                )
    return version_from_folder(state, files.values())


def version_from_folder(state: State, files: Iterable[FileRef]) -> VersionWritten | None:
    """A version with these files; None if the newest version has the same files."""
    ordered = tuple(sorted(files, key=lambda file: file.path))
    if {(file.path, file.sha256) for file in ordered} == known_files(state):
        return None
    number = len(state.work.versions) + 1
    note = "as found in the workspace"
    return VersionWritten(number=number, files=ordered, tree=tree_of(ordered), note=note, found=True)


def known_files(state: State) -> set[tuple[str, str]]:
    return {(file.path, file.sha256) for file in state.work.files}


def refuse_overwrite(member: RoleSpec, agent: Agent, run_context: RunContext) -> Agent:
    """Refuse a version that would replace a file of the person that the coder has not seen."""

    async def turn(state: State, record: Record) -> Event | None:
        last = await agent(state, record)
        refused = await check_overwrite(state, added_paths(state, last), run_context)
        if refused is None:
            return last
        return ReplyRefused(role=member.name, reason=refused.reason, shown=refused.shown_files)

    return turn


def added_paths(state: State, event: Event | None) -> list[str]:
    """The paths that the coder's version adds."""
    if not isinstance(event, VersionWritten) or event.found:
        return []
    before = {file.path for file in state.work.files}
    return [file.path for file in event.files if file.path not in before]


class OverwriteRefusal(Value):
    """Why files cannot be written, and the files whose text the reason shows."""

    reason: str
    shown_files: tuple[FileRef, ...] = ()


async def check_overwrite(
    state: State, paths: Iterable[str], run_context: RunContext
) -> OverwriteRefusal | None:
    """Why these new paths cannot be written; None if they can."""
    wished = list(paths)
    if not wished:
        return None
    known = [file.path for file in state.work.files]
    scratch = run_context.scratch
    for path in wished:
        there = scratch is not None and path in scratch.manifest.by_path()
        trouble = None if there else path_problem(path, [*known, *wished])
        reason = trouble.reason if trouble else await obstacle(state, path, run_context)
        if reason:
            return OverwriteRefusal(reason=reason)
    contents = {path: await run_context.content(path) for path in wished} if not run_context.mirror else {}
    foreign = {
        path: content
        for path, content in contents.items()
        if content is not None and is_foreign(state, path, sha256(content).hexdigest())
    }
    return (
        await overwrite_refusal(foreign, await run_context.hidden_paths(state), run_context)
        if foreign
        else None
    )


async def obstacle(state: State, path: str, run_context: RunContext) -> str:
    """Describe a folder, link or file that blocks writing; one that a run left is removed, and no obstacle."""
    if not path_and_parents(path).isdisjoint((*state.work.created_paths, *state.work.stale_artefacts)):
        return ""
    reason = await in_thread(lambda: run_context.workspace.obstacle(path))
    return f"'{path}' {reason}" if reason else ""


async def overwrite_refusal(
    foreign: dict[str, bytes], hidden: set[str], run_context: RunContext
) -> OverwriteRefusal:
    """Refuse to overwrite the files, and show their texts up to a limit unless one of them must stay hidden."""
    harmless = run_context.harmless
    texts = {path: visible_text(path, content, hidden, harmless) for path, content in foreign.items()}
    closed = [path for path, text in texts.items() if text is None]
    if closed:
        why = "in the folder already, and may not be shown or replaced"
        return OverwriteRefusal(reason=f"{quote_paths(closed)}: {why}; choose another name")
    parts: list[str] = []
    refs: list[FileRef] = []
    room = MOST_SHOWN
    for path, content in foreign.items():
        room -= len(content)
        if room >= 0:
            parts.append(fenced_block(path, texts[path] or ""))
            refs.append(FileRef(path=path, sha256=await run_context.blobs.put(content), size=len(content)))
    head = f"{quote_paths(foreign)}: in the folder already, unknown to you; nothing was written."
    return OverwriteRefusal(
        reason="\n\n".join([f"{head} Read, and send again whole what shall change.", *parts]),
        shown_files=tuple(refs),
    )


def quote_paths(paths: Iterable[str]) -> str:
    return ", ".join(f"'{path}'" for path in paths)


def visible_text(path: str, content: bytes, hidden: set[str], harmless: Collection[str]) -> str | None:
    """The text of a file of the person; None if members may not see it."""
    if path_and_parents(path) & hidden or is_secret(path, content, harmless):
        return None
    return text_of_content(content, LONGEST_SHOWN)


def fenced_block(path: str, text: str) -> str:
    """The text as a code block with a fence that does not occur in it."""
    longest = max(map(len, re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence} {path}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"
