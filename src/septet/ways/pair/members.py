"""The members of the coder–runner pair: manager and coder with a model, the runner with the sandbox."""

import shlex
from collections.abc import Callable

from septet.agents.checks import find_evidence
from septet.agents.protection import refuse_overwrite, with_folder_protection
from septet.agents.replies import Brief, one_answer_agent
from septet.agents.reply_files import files_sent, keep_file, sources
from septet.agents.run_context import RunContext
from septet.agents.runner import (
    look_for_special_cases,
    next_run,
    one_run,
    open_base_checks,
    open_controls,
    possible_controls,
    program_of,
    provide,
    set_up,
    waits,
)
from septet.common.languages import run_command_prefix
from septet.domain.events import (
    Event,
    PlanProposed,
    RunFinished,
    RunStarted,
    SpeakerChosen,
    Terminated,
    VersionWritten,
)
from septet.domain.files import main_of, tree_of
from septet.domain.messages import Message
from septet.domain.plans import Plan, Refusal, TestsPass
from septet.domain.replies import holds_blocks
from septet.domain.runs import Cell, Mode, PlannedRun, mode_name
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Blobs, Bus, Model, Record
from septet.team.evidence import evidence_report, open_runs
from septet.team.graph import Edges, newest_run_failed, speaker_choices
from septet.team.layouts import deleted_after
from septet.team.run_modes import mode_of_run
from septet.ways.iterate.members import member as team_member
from septet.ways.pair.briefing import FORGET, pair_briefing
from septet.ways.pair.policy import PAIR, NextSpeaker, parse_manager, parse_task_checks
from septet.ways.way import MemberContext

MayEnd = Callable[[State], bool]


def manager_agent(
    member: RoleSpec, model: Model, bus: Bus, brief: Brief, edges: Edges, may_end: MayEnd
) -> Agent:
    """The manager: gives the task, chooses the next speaker, and alone may end the chat. Asks again once if invalid."""

    async def settle(state: State, text: str) -> Event | Refusal:
        return manager_event(member, state, text, edges, may_end)

    return one_answer_agent(member, model, bus, brief, settle)


def pair_brief(member: RoleSpec, blobs: Blobs) -> Brief:
    async def brief(state: State) -> tuple[Message, ...]:
        return pair_briefing(member, state, await sources(state, blobs))

    return brief


def manager_event(
    member: RoleSpec, state: State, text: str, edges: Edges, may_end: MayEnd
) -> Event | Refusal:
    legal = speaker_choices(edges, member.name, state)
    read = parse_manager(text, legal)
    if isinstance(read, Terminated) and not may_end(state):
        read = Refusal(reason=f"{first_failure(state)}, so the task is not resolved")
    if isinstance(read, NextSpeaker):
        return SpeakerChosen(speaker=read.speaker)
    repaired = state.talk.refusal_of(member.name) is not None
    return SpeakerChosen(speaker=legal[0], fallback=True) if isinstance(read, Refusal) and repaired else read


def first_failure(state: State) -> str:
    unmet = [
        f"{line.item.id} is not met ({line.detail})" for line in evidence_report(state) if not line.is_met
    ]
    return unmet[0] if unmet and state.work.evidence else "the newest run did not succeed"


def task_agent(member: RoleSpec, model: Model, run_context: RunContext) -> Agent:
    """The pair's manager: its task, given before there is code, names the checks that prove it."""

    async def settle(state: State, text: str) -> Event | Refusal:
        begins = state.plan.current is None and not state.work.versions
        task = parse_task_checks(text) if begins else None
        if isinstance(task, Plan):
            return PlanProposed(plan=task, by="manager")
        repaired = state.talk.refusal_of(member.name) is not None
        if isinstance(task, Refusal) and not repaired:
            return task
        return manager_event(member, state, text, PAIR, ran_well)

    brief = pair_brief(member, run_context.blobs)
    return one_answer_agent(member, model, run_context.bus, brief, settle)


def ran_well(state: State) -> bool:
    return bool(state.work.runs) and not newest_run_failed(state)


def coder_agent(member: RoleSpec, model: Model, bus: Bus, blobs: Blobs, talks: bool = False) -> Agent:
    """The coder: a plan first, then code; the newest block is what the runner runs.

    In a kernel the same code again is another step: it meets another state. Who `talks` may always say just words.
    """

    async def settle(state: State, text: str) -> Event | Refusal | None:
        """The first message may be text only; after that, code is required."""
        before = {file.path: file for file in state.work.files}
        sent = await files_sent(state, text, blobs)
        if isinstance(sent, Refusal):
            first = state.work.version is None and state.floor.turn_counts.get(member.name, 0) == 1
            return None if (first or talks) and not holds_blocks(text) else sent
        files = {**before, **{file.path: await keep_file(file, blobs) for file in sent}}
        ordered = tuple(files[path] for path in sorted(files))
        number = len(state.work.versions) + 1
        moment = f"cell {number}" if state.team.run == "cells" else ""
        deleted, tree = deleted_after(state, ordered), tree_of(ordered, moment)
        return VersionWritten(number=number, files=ordered, deleted=deleted, tree=tree)

    return one_answer_agent(member, model, bus, pair_brief(member, blobs), settle)


def running_newest(member: RoleSpec, run_context: RunContext) -> Agent:
    """The runner: runs the coder's newest code once, as a file or as a cell in the kernel."""

    async def turn(state: State, record: Record) -> Event | None:
        version = state.work.version
        if version is not None and state.work.runs:
            return await check_task(member, state, record, run_context)
        if version is None:
            return None
        cells = state.team.run == "cells"
        await run_context.write_newest(state, sweep=not cells)
        state = await set_up(state, record, run_context)
        state = await provide(state, record, run_context, await sources(state, run_context.blobs))
        if waits(state):
            return None
        main = main_of(version.files, languages=state.team.languages)
        runner = run_command_prefix(main.path, state.team.languages) if main else ""
        mode = (
            await cell_of(state, run_context.blobs) if cells else await usual_mode(state, run_context.blobs)
        )
        started = RunStarted(
            id=f"v{version.number} run",
            purpose="run",
            command=f"{runner} {shlex.quote(main.path)}" if main else "true",
            tree=version.tree,
            mode=mode_name(mode),
        )
        state = await record(started)
        ran = await run_context.run(state, member.name, started, mode)
        if not state.plan.items:
            return ran
        return await check_task(member, await record(ran), record, run_context)

    return turn


async def check_task(member: RoleSpec, state: State, record: Record, run_context: RunContext) -> None:
    """Evaluate the checks of the manager's task after the code has run successfully."""
    if not state.work.runs[0].result.succeeded:
        return
    tested = any(isinstance(item.check, TestsPass) for item in state.plan.items)
    controls = possible_controls(await program_of(state, run_context.blobs, run_context.scratch))
    while planned := next_run(state, controls) if tested else next_command(state):
        state = await one_run(member.name, state, record, run_context, planned)
    state = await look_for_special_cases(member.name, state, record, run_context)
    for item in state.plan.items:
        if item.id not in state.work.evidence:
            state = await record(await find_evidence(state, item, run_context))


def next_command(state: State) -> PlannedRun | None:
    """The next check that is a run, or a control of one that passed."""
    checks = [one for one in open_runs(state) if one.purpose == "check"]
    checks = checks or open_controls(state) or open_base_checks(state)
    return checks[0] if checks else None


async def usual_mode(state: State, blobs: Blobs) -> Mode | None:
    return mode_of_run(state, await sources(state, blobs))


async def cell_of(state: State, blobs: Blobs) -> Cell | None:
    """The newest code as a cell after those that succeeded: the log can restore the kernel's state."""
    code = await code_of(state.work.version, blobs) if state.work.version else ""
    earlier = () if code.startswith(FORGET) else await good_cells(state, blobs)
    return Cell(code=code, earlier=tuple(earlier)) if code else None


async def good_cells(state: State, blobs: Blobs) -> list[str]:
    """The cells that succeeded since the kernel's last restart, in order."""
    versions = {version.tree: version for version in state.work.versions}
    ran = [one for one in state.talk.messages if isinstance(one, RunFinished) and one.mode == "cell"]
    cells: list[str] = []
    for run in ran:
        if run.result.succeeded and run.tree in versions:
            code = await code_of(versions[run.tree], blobs)
            cells = [code] if code.startswith(FORGET) else [*cells, code]
    return cells


async def code_of(version: VersionWritten, blobs: Blobs) -> str:
    main = main_of(version.files)
    return (await blobs.get(main.sha256)).decode(errors="replace") if main else ""


def member(spec: RoleSpec, context: MemberContext) -> Agent:
    """The agents of manager, coder and runner; person and exemplar are as in any team."""
    run_context = context.run_context
    match spec.role:
        case "runner":
            return with_folder_protection(running_newest(spec, run_context), run_context, runs=True)
        case "manager":
            return task_agent(spec, context.open_model(spec.model), run_context)
        case "coder":
            writing = coder_agent(spec, context.open_model(spec.model), run_context.bus, run_context.blobs)
            return with_folder_protection(refuse_overwrite(spec, writing, run_context), run_context)
        case _:
            return team_member(spec, context)
