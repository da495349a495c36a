"""Runs the newest version of a chat for the person, in a temporary copy."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from septet.agents.reply_files import sources
from septet.agents.run_context import RunContext, evidence_job, mount_over_origin
from septet.agents.runner import rehearse_version
from septet.common.temporary import temporary_folder
from septet.domain.events import RunStarted
from septet.domain.files import Layout
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.errors import BadUsage
from septet.runtime.bus import MemoryBus
from septet.team.run_modes import mode_of_run
from septet.wiring.session import Session
from septet.workspace.files import Workspace, in_thread
from septet.workspace.scratch import Scratch


async def try_newest(session: Session, chat: str, words: Sequence[str], unsafe: bool) -> RunResult:
    """Run the given command, or the plan's."""
    state = await session.state(chat)
    command = shlex.join(words) or planned_command(state)
    run = RunStarted(id="by hand", purpose="run", command=command, tree="")
    sandbox = await session.sandbox(unsafe)
    mode = None if words else mode_of_run(state, await sources(state, session.blobs))
    if state.base is None:
        job = evidence_job(state, run, Workspace(Path(state.workspace)))
        return await sandbox.run(replace(job, mode=mode))
    scratch = (await session.delivery(state)).scratch
    with temporary_folder("try") as folder:
        await lay_out_version(session, state, scratch, folder)
        job = replace(evidence_job(state, run, Workspace(folder)), mode=mode)
        return await sandbox.run(mount_over_origin(job, scratch))


def planned_command(state: State) -> str:
    """The command that starts the program."""
    return (state.plan.current.run if state.plan.current else "") or "python main.py"


async def lay_out_version(session: Session, state: State, scratch: Scratch, folder: Path) -> None:
    """Copy the base and the newest version."""
    if state.work.version is None:
        raise BadUsage(f"'{state.chat}' has no version yet", f"septet resume {state.chat}")
    await in_thread(lambda: scratch.fill(folder))
    workspace = Workspace(folder)
    await workspace.write_layout(Layout(files=state.work.version.files), session.blobs)
    for path in state.work.version.deleted:
        await in_thread(lambda path=path: (folder / path).unlink(missing_ok=True))


async def check_newest(session: Session, chat: str) -> State:
    """Run the plan's checks on the newest version again, in a temporary copy; returns the state that they lead to."""
    state = await session.state(chat)
    if state.work.version is None:
        raise BadUsage(f"'{chat}' has no version yet", f"septet resume {chat}")
    version = replace(state.work.version, number=len(state.work.versions) + 1)
    sandbox = await session.sandbox()
    if state.base is not None:
        return await (await session.delivery(state)).rehearse(version, sandbox)
    with temporary_folder("checks") as folder:
        context = RunContext(Workspace(folder), sandbox, session.blobs, MemoryBus())
        return await rehearse_version(state, version, context)
