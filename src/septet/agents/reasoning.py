"""The autocoder's reasoning step. No model is asked: snapshot, tree, validation, tests and a run say it all."""

from collections.abc import Mapping
from contextlib import aclosing

from msgspec.structs import replace

from septet.agents.providing import waits
from septet.agents.runner import Bench, running
from septet.agents.speaking import sources
from septet.domain.events import (
    Event,
    EvidenceFound,
    PackageEvent,
    RunFinished,
    RunStarted,
    SnapshotTaken,
    VersionWritten,
)
from septet.domain.files import FileRef, tree_of
from septet.domain.reduce import reduce_packages, reduce_tools, reduce_work
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Acts, Agent, Blobs, Last
from septet.team.reason_and_act import diagnose
from septet.tools.snapshots import Entry, Snapshot, keep, recall, take
from septet.tools.validation import fault_of, fault_text

LARGEST_TEXT = 256 << 10
MAIN = "main.py"
AS_FOUND = "as found in the workspace"


def reasoning(member: RoleSpec, bench: Bench) -> Agent:
    """Back up, see what is there, run what can be run, and say what the facts ask for."""
    run = running(member, bench)

    async def turn(state: State) -> Acts:
        if state.turn is None or state.turn.decided:
            return
        if state.turn.snapshot is None:
            taken = await snapshot_of(state, bench)
            state = reduce_tools(state, taken)
            yield taken
        found = await version_found(state, bench.blobs)
        if found is not None:
            state = reduce_work(state, found)
            yield found
        if state.version is not None and state.version.files:
            async with aclosing(run(with_main(state))) as events:
                async for event in events:
                    state = known(state, event)
                    yield event
        if waits(state):
            return
        texts = await sources(state, bench.blobs)
        yield Last(event=diagnose(state, member.name, texts, faults_of(texts)))

    return turn


def with_main(state: State) -> State:
    """A plan that names no program still has main.py run, if there is one."""
    plan = state.plan
    if plan is None or plan.run or state.version is None:
        return state
    has_main = any(file.path == MAIN for file in state.version.files)
    return replace(state, plan=replace(plan, run=f"python {MAIN}")) if has_main else state


def known(state: State, event: Event) -> State:
    if isinstance(event, PackageEvent):
        return reduce_packages(state, event)
    return reduce_work(state, event) if isinstance(event, RunStarted | RunFinished | EvidenceFound) else state


async def snapshot_of(state: State, bench: Bench, note: str = "") -> SnapshotTaken:
    snapshot = await take(bench.workspace, bench.blobs)
    return SnapshotTaken(
        number=len(state.snapshots) + 1,
        manifest=await keep(snapshot, bench.blobs),
        entries=len(snapshot.entries),
        note=note,
    )


async def version_found(state: State, blobs: Blobs) -> VersionWritten | None:
    """What the person changed since the newest version, or brought along: a version of its own."""
    if state.turn is None or state.turn.snapshot is None:
        return None
    files = await texts_in(await recall(state.turn.snapshot.manifest, blobs), state, blobs)
    tree = tree_of(files)
    if tree == (state.version.tree if state.version else tree_of(())):
        return None
    return VersionWritten(number=len(state.versions) + 1, files=files, tree=tree, note=AS_FOUND)


async def texts_in(snapshot: Snapshot, state: State, blobs: Blobs) -> tuple[FileRef, ...]:
    """The project's own text files: neither what runs have made nor what is no text."""
    ours = {file.path for file in (state.version.files if state.version else ())}
    made = (state.artefacts.keys() | state.stale.keys()) - ours
    wanted = [entry for entry in snapshot.entries if entry.path not in made and await is_text(entry, blobs)]
    return tuple(FileRef(path=entry.path, sha256=entry.sha256, size=entry.size) for entry in wanted)


async def is_text(entry: Entry, blobs: Blobs) -> bool:
    if entry.kind != "file" or not entry.sha256 or entry.size > LARGEST_TEXT:
        return False
    content = await blobs.get(entry.sha256)
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def faults_of(texts: Mapping[str, str]) -> dict[str, str]:
    """What is wrong with which Python file."""
    found = {path: fault_of(text, path) for path, text in texts.items() if path.endswith(".py")}
    return {path: fault_text(path, fault) for path, fault in found.items() if fault is not None}
