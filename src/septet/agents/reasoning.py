"""The autocoder's reasoning step. No model is asked: snapshot, tree, validation, tests and a run say it all."""

from collections.abc import Mapping
from contextlib import aclosing

from msgspec.structs import replace

from septet.agents.protection import as_found
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
from septet.domain.files import FileRef, is_expected
from septet.domain.reduce import reduce_packages, reduce_tools, reduce_work
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Acts, Agent, Last
from septet.team.layouts import is_foreign, is_made
from septet.team.reason_and_act import diagnose
from septet.tools.listings import LARGEST_TEXT, Entry, as_text
from septet.tools.snapshots import recall, taken
from septet.tools.validation import fault_of, fault_text

MAIN = "main.py"


def reasoning(member: RoleSpec, bench: Bench) -> Agent:
    """Back up, see what is there, run what can be run, and say what the facts ask for."""
    run = running(member, bench)

    async def turn(state: State) -> Acts:
        if state.turn is None or state.turn.decided:
            return
        if state.turn.snapshot is None:
            backup = await backed_up(state, bench)
            state = reduce_tools(state, backup)
            yield backup
        found = await project_found(state, bench)
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


async def backed_up(state: State, bench: Bench) -> SnapshotTaken:
    """The folder as it is; an image of one elsewhere is brought up to date first."""
    if bench.mirror:
        await bench.show(state)
    number, hidden = len(state.snapshots) + 1, await bench.hidden(state)
    return (await taken(bench.workspace, hidden, bench.blobs, number))[0]


async def project_found(state: State, bench: Bench) -> VersionWritten | None:
    """What the person changed since the newest version, or brought along: a version of its own."""
    if state.turn is None or state.turn.snapshot is None or bench.mirror:
        return None
    there = (await recall(state.turn.snapshot.manifest, bench.blobs)).files()
    ours = {file.path: file for file in (state.version.files if state.version else ())}
    files = [file for path, file in ours.items() if path not in there and stays(state, path, bench)]
    for path, entry in there.items():
        if path in ours and not is_foreign(state, path, entry.sha256):
            files.append(ours[path])
        elif not is_made(state, path, entry.sha256) and await is_text(entry, bench):
            files.append(FileRef(path=path, sha256=entry.sha256, size=entry.size))
    return as_found(state, files)


def stays(state: State, path: str, bench: Bench) -> bool:
    """A file of the version that the snapshot has not: git ignores it, or a run took it away and not the person."""
    digest = bench.workspace.digest(path)
    return is_expected(state.expected, path, digest)


async def is_text(entry: Entry, bench: Bench) -> bool:
    return entry.size <= LARGEST_TEXT and as_text(await bench.blobs.get(entry.sha256)) is not None


def faults_of(texts: Mapping[str, str]) -> dict[str, str]:
    """What is wrong with which Python file."""
    found = {path: fault_of(text, path) for path, text in texts.items() if path.endswith(".py")}
    return {path: fault_text(path, fault) for path, fault in found.items() if fault is not None}
