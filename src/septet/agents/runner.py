"""The runner: installs packages, runs the newest version and its checks in the sandbox, and records the evidence."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from anyio import create_memory_object_stream, create_task_group
from anyio.streams.memory import MemoryObjectReceiveStream
from msgspec.structs import replace

from septet.agents.ask import ENCODER, Live, live_topic
from septet.agents.checks import find_evidence, held_before
from septet.agents.control_folders import (
    control_folder,
    part_of_version,
    possible_controls,
    program_of,
    tree_folder,
)
from septet.agents.records import Rehearsal
from septet.agents.replies import sources
from septet.domain.events import (
    PackagesDecided,
    PackagesInstalled,
    PackagesWanted,
    RunFinished,
    RunStarted,
    VersionWritten,
)
from septet.domain.facts import fact_named
from septet.domain.files import FileChange, WorkspaceDelta, is_test
from septet.domain.packages import Installation, MissingPackages
from septet.domain.plans import (
    Check,
    CommandSucceeds,
    CustomCheck,
    ExampleHolds,
    Judged,
    Mends,
    Serves,
    ShowsWindow,
    TestsPass,
)
from septet.domain.pytest_report import PYTEST, covers
from septet.domain.runs import (
    CONTROLS,
    HOLLOW,
    ControlName,
    Job,
    Limits,
    Mode,
    PlannedRun,
    Purpose,
    RunResult,
    Server,
    mode_name,
)
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Blobs, Bus, Packages, Record, Sandbox
from septet.team.acceptance import example_driver
from septet.team.baseline import (
    AFFECTED,
    WHOLE_SUITE,
    chosen_tests,
    files_that_finish,
    has_baseline,
    is_long,
    needs_base_run,
    open_repeats,
    run_for,
    tests_are_evidence,
    tests_command,
    tests_of,
)
from septet.team.controls import MUTANTS, REACHED, only_reached
from septet.team.evidence import (
    control_of_tests,
    needs_change_shown,
    needs_found_tests,
    needs_mutant,
    open_runs,
    test_problems,
)
from septet.team.layouts import first_snapshot, layout_of, workspace_delta
from septet.team.run_modes import mode_of_run, mode_of_tests
from septet.team.suite_runners import parse_suite_output, reporting_command, script_of_package
from septet.workspace.files import Workspace, in_thread, make_folder, path_and_parents
from septet.workspace.listing import is_secret
from septet.workspace.modules import affected_tests
from septet.workspace.project import requirements, setup_command
from septet.workspace.scratch import ENVIRONMENTS, Scratch, files_below
from septet.workspace.snapshots import hidden_in

Stream = Literal["stdout", "stderr"]


class OutputCapture:
    """Captures each output stream up to its limit."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.streams: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

    def receive(self, stream: Stream, piece: bytes) -> None:
        kept = self.streams[stream]
        kept += piece[: max(0, self.limits.output - len(kept))]

    async def with_blobs(self, result: RunResult, blobs: Blobs) -> RunResult:
        """Store streams that the result truncates as blobs, and add their addresses."""
        return replace(
            result,
            stdout_blob=await self._blob("stdout", blobs),
            stderr_blob=await self._blob("stderr", blobs),
        )

    async def _blob(self, stream: Stream, blobs: Blobs) -> str:
        content = self.streams[stream]
        return await blobs.put(bytes(content)) if len(content) > self.limits.kept_output else ""


async def provide(
    state: State, record: Record, run_context: "RunContext", sources: Mapping[str, str]
) -> State:
    """Install missing packages, or record that they are wanted if the person must agree first."""
    missing = await open_wish(state, run_context.packages, sources)
    return await install_missing(state, record, run_context, missing)


async def install_missing(
    state: State, record: Record, run_context: "RunContext", missing: MissingPackages
) -> State:
    packages = run_context.packages
    if packages is None or not missing:
        return state
    if missing != state.work.provisions.wanted:
        state = await record(PackagesWanted(missing=missing))
    if state.team.packages == "auto" and state.work.provisions.to_ask:
        names = tuple(sorted(missing.names))
        state = await record(PackagesDecided(names=names, allowed=True, by="policy"))
    if not state.work.provisions.to_ask:
        if missing.setup:
            installation = await run_setup(state, run_context, missing.setup)
        else:
            installation = await packages.install(state.workspace, missing)
        state = await record(PackagesInstalled(installation=installation))
    return state


async def open_wish(state: State, packages: Packages | None, sources: Mapping[str, str]) -> MissingPackages:
    if packages is None or state.team.packages == "off":
        return MissingPackages()
    return state.work.provisions.fresh(await packages.find_missing(state.workspace, sources))


def waits(state: State) -> bool:
    """Whether runs must wait until the person decides about packages."""
    return state.team.packages == "ask" and bool(state.work.provisions.to_ask)


SETUP_REMEDY = (
    "make the environment in the folder yourself, or name another command with `setup:` in the team file"
)
BASELINE_SECONDS = 600.0
MOST_KEPT = 1_000
MOST_BYTES = 256 << 20
"""Limits of the files of one run that are stored as blobs."""
SUITES: frozenset[Purpose] = frozenset(
    {"tests", "tests alone", "tests as found", "tests again", "tests on base", "baseline"}
)
SHOWS_CHANGE = (Mends, ShowsWindow, CustomCheck)
"""Kinds of check that are not compared with the base, or have been."""
PLAIN_WORDS = re.compile(r"[\w ./=:@%+,-]+")


class RunContext:
    """What the runner needs: a workspace, a sandbox, blobs and a bus for live output."""

    def __init__(
        self,
        workspace: Workspace | Scratch,
        sandbox: Sandbox,
        blobs: Blobs,
        bus: Bus,
        packages: Packages | None = None,
        mirror: bool = False,
    ) -> None:
        self.packages = packages
        self.scratch = workspace if isinstance(workspace, Scratch) else None
        """The copy of the person's folder, if the team works in one."""
        self.mirror = mirror
        """Whether the workspace is Septet's own copy of a folder on another machine."""
        self.workspace = workspace.work if isinstance(workspace, Scratch) else workspace
        self.sandbox = sandbox
        self.blobs = blobs
        self.bus = bus

    async def write_newest(self, state: State, *, sweep: bool = False) -> None:
        """Write the newest version to disk; with `sweep`, remove what runs of older versions left."""
        if self.scratch is not None:
            await show_delta(self.scratch, workspace_delta(state, sweep=sweep), self.blobs)
            return
        await self.workspace.write_layout(layout_of(state, sweep=sweep, mirror=self.mirror), self.blobs)

    async def run(
        self, state: State, speaker: str, started: RunStarted, mode: Mode | None = None
    ) -> RunFinished:
        """Run one program with live output, and store the files that it creates."""
        takes = part_of_version(started)
        if started.purpose in CONTROLS:
            result = await self.run_control(state, speaker, started, mode)
        elif takes is not None:
            async with tree_folder(state, self.blobs, self.scratch, takes) as folder:
                job = replace(self.mounted(evidence_job(state, started, folder)), mode=mode)
                result = await self.run_reported(job, state.chat, speaker, started)
                result = replace(result, changes=(), others=())
        else:
            result = await self.run_in_workspace(state, speaker, started, mode)
        return RunFinished(
            id=started.id,
            purpose=started.purpose,
            command=started.command,
            tree=started.tree,
            result=result,
            mode=started.mode,
            about=started.about,
            only=started.only,
        )

    async def run_control(
        self, state: State, speaker: str, started: RunStarted, mode: Mode | None
    ) -> RunResult:
        """Run a check over a program that must fail it."""
        control = started.about if started.about in MUTANTS else HOLLOW
        async with control_folder(state, self.blobs, self.scratch, control) as folder:
            job = replace(self.mounted(control_job(state, started, folder)), mode=mode)
            result = replace(await self.run_reported(job, state.chat, speaker, started), changes=())
            if control == "results" and result.tests is not None:
                reached = await folder.content(REACHED) or b""
                tests = only_reached(result.tests, reached.decode(errors="replace"))
                result = replace(result, tests=tests)
        return result

    async def run_in_workspace(
        self, state: State, speaker: str, started: RunStarted, mode: Mode | None
    ) -> RunResult:
        """Run in the workspace itself, after what an earlier run may have done to it is undone."""
        await in_thread(lambda: make_folder(self.workspace.root))  # it may have lost its permissions
        if started.purpose in ("run", "tests", "check"):  # or what it is judged by may have been rewritten
            await self.write_newest(state)
            await self.remove_traces(state)
        job = replace(self.mounted(evidence_job(state, started, self.workspace)), mode=mode)
        result = await self.run_reported(job, state.chat, speaker, started)
        old = any(change.kind == "changed" for change in result.changes)
        hidden = await self.hidden_paths(state) if old else set[str]()
        return replace(result, changes=await self.keep_changes(result.changes, hidden))

    async def run_reported(self, job: Job, chat: str, speaker: str, started: RunStarted) -> RunResult:
        """Run the job, and add the outcome of each test if the project's test runner reports it."""
        result = await self.run_live(job, chat, speaker)
        if job.tests or started.purpose not in SUITES:
            return result
        whole = await self.blobs.get(result.stdout_blob) if result.stdout_blob else result.stdout.encode()
        script = await in_thread(lambda: npm_test_script(job.workspace))
        output = whole.decode(errors="replace")
        return replace(result, tests=parse_suite_output(started.command, script, output, job.place))

    async def remove_traces(self, state: State) -> None:
        """A check begins with the version and what the plan's run has made: no test or check tells another anything."""
        traces, made = traces_of(state), made_by_run(state)
        for path in sorted(traces, key=lambda one: one.count("/"), reverse=True):
            await in_thread(lambda path=path: self.remove(path, traces[path]))
        await self.put_back({path: digest for path, digest in made.items() if digest})

    def remove(self, path: str, digest: str) -> None:
        if self.scratch is not None:
            self.scratch.remove(path)
        else:
            self.workspace.remove_known(path, (digest or self.workspace.digest(path), ""))

    async def put_back(self, files: Mapping[str, str]) -> None:
        """Restore files that runs created."""
        for path, digest in files.items():
            if await in_thread(lambda path=path: self.workspace.digest(path)) != digest:
                content = await self.blobs.get(digest)
                await in_thread(lambda path=path, content=content: self.workspace.write(path, content))

    async def content(self, path: str) -> bytes | None:
        """The content at the path, also of files that only the person's folder has and not the team's copy."""
        content, scratch = await self.workspace.content(path), self.scratch
        if (
            content is None
            and scratch is not None
            and not path_and_parents(path).isdisjoint(scratch.manifest.masked)
        ):
            return await Workspace(scratch.origin).content(path)
        return content

    def mounted(self, job: Job) -> Job:
        """The job with the copy mounted at the path of the person's folder."""
        return mount_over_origin(job, self.scratch) if self.scratch else job

    async def run_live(self, job: Job, chat: str, speaker: str) -> RunResult:
        result: RunResult | None = None
        capture = OutputCapture(job.limits)
        send, receive = create_memory_object_stream[bytes](float("inf"))

        def listen(stream: Stream, piece: bytes) -> None:
            capture.receive(stream, piece)
            send.send_nowait(piece)

        async with create_task_group() as tasks:
            tasks.start_soon(forward, receive, self.bus, chat, speaker)
            with send:
                result = await self.sandbox.run(job, listen)
        assert result is not None, "a task group that ends without an error has set the result"
        return await capture.with_blobs(result, self.blobs)

    async def hidden_paths(self, state: State) -> set[str]:
        """Paths that members may not read: git ignores them, or did when the chat began."""
        if self.scratch is not None:
            return await in_thread(self.scratch.hidden)
        return await hidden_in(self.workspace, first_snapshot(state), self.blobs)

    async def keep_changes(self, changes: tuple[FileChange, ...], hidden: set[str]) -> tuple[FileChange, ...]:
        """Store created files as blobs, up to the limits.

        Not stored: files that git ignores and that existed before the run, and files that look like secrets.
        """
        result: list[FileChange] = []
        count, room = MOST_KEPT, MOST_BYTES
        for change in changes:
            private = change.kind == "changed" and not path_and_parents(change.path).isdisjoint(hidden)
            fits = bool(change.sha256) and count > 0 and change.size <= room
            keep = fits and not private and await self.keep(change)
            count, room = (count - 1, room - change.size) if keep else (count, room)
            result.append(change if keep or change.kind == "deleted" else replace(change, sha256=""))
        return tuple(result)

    async def keep(self, change: FileChange) -> bool:
        """Store a file as a blob; False if it has changed since."""
        content = await self.workspace.content(change.path)
        if content is None or is_secret(change.path, content):
            return False
        return await self.blobs.put(content) == change.sha256


def runner_agent(member: RoleSpec, run_context: RunContext) -> Agent:
    """The runner as an agent: makes the runs that the newest version still needs, then evaluates every check."""

    async def turn(state: State, record: Record) -> None:
        state = await set_up(state, record, run_context)
        if waits(state):
            return
        state = await take_baseline(member.name, state, record, run_context)
        await run_and_check(member.name, state, record, run_context)

    return turn


async def run_and_check(
    name: str, state: State, record: Record, run_context: RunContext, *, whole: bool = True
) -> State:
    """Run and check the newest version; unless `whole`, only the affected tests of a long suite run."""
    assert state.work.version is not None, "the floor gives the runner a version to run"
    await run_context.write_newest(state, sweep=True)  # the newest version must create its own files
    texts = await sources(state, run_context.blobs)
    state = await provide(state, record, run_context, texts)
    if waits(state):
        return state
    controls = possible_controls(await program_of(state, run_context.blobs, run_context.scratch))
    while (planned := next_run(state, controls, whole=whole)) is not None:
        state = await one_run(name, state, record, run_context, planned)
    await run_context.put_back({path: digest for path, digest in traces_of(state).items() if digest})
    for item in state.plan.items:
        if item.id not in state.work.evidence and not isinstance(item.check, Judged):
            state = await record(await find_evidence(state, item, run_context))
    return state


async def set_up(state: State, record: Record, run_context: RunContext) -> State:
    """A project without an environment of its own gets one, once, as the policy says.

    Its setup command makes it; where there is none, or it fails, what the project says that it needs is installed.
    """
    base, scratch, packages = state.base, run_context.scratch, run_context.packages
    if base is None or scratch is None or packages is None or state.team.packages == "off":
        return state
    if command := await open_setup(state, run_context):
        state = await install_missing(state, record, run_context, MissingPackages(setup=command))
    made = scratch.setup_succeeded() and (named_setup(state) or (scratch.setup / ".venv").is_dir())
    own = made or base.baseline is not None or base.survey.interpreter
    if waits(state) or own or tests_command(state):
        return state
    named = await in_thread(lambda: requirements(scratch.base.root))
    missing = state.work.provisions.fresh(MissingPackages(distributions=named))
    return await install_missing(state, record, run_context, missing)


async def open_setup(state: State, run_context: RunContext) -> str:
    """The setup command that has not run yet for the copies that are there; nothing where there is none."""
    base, scratch, provisions = state.base, run_context.scratch, state.work.provisions
    if base is None or scratch is None or scratch.was_set_up() or state.team.packages == "off":
        return ""
    there = [name for name in ENVIRONMENTS if (scratch.origin / name).exists()]
    command = named_setup(state)
    if not command:
        command = await in_thread(lambda: setup_command(scratch.base.root, there))
    elif there:
        return ""
    refused = command in provisions.settled and command not in provisions.allowed
    late = base.baseline is not None and command not in provisions.settled
    return "" if refused or late else command


def named_setup(state: State) -> str:
    """The setup command that the team file or the person names."""
    own_facts = [fact for fact in state.facts if fact in state.own_facts]
    return state.team.setup or fact_named("setup", own_facts)


async def run_setup(state: State, run_context: RunContext, command: str) -> Installation:
    """The command, in a copy of the base at the project's own path; what fails says what helps."""
    scratch, packages = run_context.scratch, run_context.packages
    assert scratch is not None, "only a copy of a project is set up"
    assert packages is not None, "who wants packages has somebody to install them"
    folder = await in_thread(scratch.start_setup)
    job = Job(command=("sh", "-c", command), workspace=str(folder.root), network=state.team.network)
    mounted = mount_over_origin(job, scratch)
    result = await run_context.run_live(packages.setup_job(mounted), state.chat, "runner")
    await in_thread(lambda: scratch.finish_setup(result.succeeded))
    output = result.stdout + result.stderr
    if result.succeeded:
        return Installation(installed=(command,), output=output, seconds=result.seconds)
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "it printed nothing")
    why = f"{result.ending}, {last.strip()[:300]} ({SETUP_REMEDY})"
    return Installation(failed=(command,), why=why, output=output, seconds=result.seconds)


def made_by_run(state: State) -> dict[str, str]:
    """Digests of the files that the plan's run created or changed, without the version's own files."""
    own = {file.path for file in state.work.files}
    runs = [run for run in state.work.runs if run.purpose == "run"]
    changes = [
        one for run in runs for one in run.result.changes if one.kind != "deleted" and one.path not in own
    ]
    return {one.path: one.sha256 for one in changes}


def traces_of(state: State) -> dict[str, str]:
    """Paths that tests and checks created and that still exist, with digests; folders and links have none."""
    found: dict[str, str] = {}
    for run in state.work.runs:
        if run.purpose in ("tests", "check"):
            found |= {one.path: one.sha256 for one in run.result.changes if one.kind == "new"}
            found |= dict.fromkeys(run.result.others, "")
            for one in run.result.changes:
                if one.kind == "deleted":
                    found.pop(one.path, None)
    return {path: digest for path, digest in found.items() if path not in made_by_run(state)}


async def take_baseline(name: str, state: State, record: Record, run_context: RunContext) -> State:
    """Run the project's tests on the untouched base, once, to know which tests failed before."""
    base, scratch = state.base, run_context.scratch
    if (
        base is None
        or scratch is None
        or base.baseline is not None
        or not (base.survey.tests or state.team.tests)
    ):
        return state
    command = tests_command(state) or " ".join(PYTEST)
    started = RunStarted(id="baseline", purpose="baseline", command=command, tree=base.survey.manifest)
    state = await record(started)
    return await record(await run_context.run(state, name, started))


def suite_limits(state: State) -> Limits:
    """The limits of the project's test suite: minutes on the base, then twice the time that it took there."""
    limits, base = state.team.limits, state.base
    if base is None:
        return limits
    took = base.baseline.result.seconds if base.baseline else BASELINE_SECONDS / 2
    seconds = max(limits.seconds, 2 * took)
    return replace(limits, seconds=seconds, cpu_seconds=max(limits.cpu_seconds, seconds))


def next_run(state: State, controls: Sequence[ControlName], *, whole: bool = True) -> PlannedRun | None:
    """The next run: first what the plan needs, then controls of what passed."""
    due = [one for one in open_runs(state) if whole or one != WHOLE_SUITE or not is_long(state)]
    if planned := due or open_repeats(state):
        return planned[0]
    if needs_found_tests(state):
        return PlannedRun(purpose="tests as found")
    if not test_problems(state) and needs_base_run(state):
        return PlannedRun(purpose="tests on base")
    if needs_doubt(state) and (HOLLOW in controls or not has_baseline(state)):
        return PlannedRun(purpose="tests alone", about=HOLLOW if HOLLOW in controls else "")
    if planned := open_controls(state) or open_base_checks(state):
        return planned[0]
    mutants = [one for one in controls if one in MUTANTS and run_for(state, "tests alone", one) is None]
    if mutants and not test_problems(state) and needs_mutant(state):
        return PlannedRun(purpose="tests alone", about=mutants[0])
    return None


def open_controls(state: State) -> list[PlannedRun]:
    """Control runs of commands that passed: they might pass without a working program; not for an unchanged base."""
    if state.base is not None and not state.work.files:
        return []
    items = [one for one in state.plan.items if isinstance(one.check, CommandSucceeds | ExampleHolds)]
    return [
        PlannedRun(purpose="hollow check", about=item.id)
        for item in items
        if went_well(state, item.id) and run_for(state, "hollow check", item.id) is None
    ]


def open_base_checks(state: State) -> list[PlannedRun]:
    """Checks that passed, without the version's changes, until one of them fails there."""
    if not needs_change_shown(state) or any(isinstance(one.check, SHOWS_CHANGE) for one in state.plan.items):
        return []
    items = [
        one for one in state.plan.items if isinstance(one.check, CommandSucceeds | ExampleHolds | Serves)
    ]
    passed = [one for one in items if went_well(state, one.id)]
    tried = [one for one in passed if run_for(state, "check on base", one.id) is not None]
    if not all(held_before(state, one) for one in tried):
        return []
    return [PlannedRun(purpose="check on base", about=one.id) for one in passed if one not in tried]


def went_well(state: State, item: str) -> bool:
    run = run_for(state, "check", item)
    return run is not None and run.result.succeeded


async def one_run(
    speaker: str, state: State, record: Record, run_context: RunContext, planned: PlannedRun
) -> State:
    assert state.work.version is not None
    mode = mode_for(state, planned, await sources(state, run_context.blobs))
    started = RunStarted(
        id=f"v{state.work.version.number} {planned.purpose} {planned.about}".rstrip(),
        purpose=planned.purpose,
        about=planned.about,
        command=command_for(state, planned),
        tree=state.work.version.tree,
        mode=mode_name(mode),
        only=await tests_for(state, run_context, planned),
    )
    state = await record(started)
    return await record(await run_context.run(state, speaker, started, mode))


async def tests_for(state: State, run_context: RunContext, planned: PlannedRun) -> tuple[str, ...]:
    """The tests that the run is limited to; empty for all."""
    version, scratch = state.work.version, run_context.scratch
    if (planned.purpose, planned.about) != ("tests", AFFECTED) or version is None or scratch is None:
        return chosen_tests(state, planned)
    changed = [*(file.path for file in version.files), *version.deleted]
    named = [one.check.target for one in state.plan.items if isinstance(one.check, TestsPass | Mends)]
    found = await in_thread(
        lambda: affected_tests(scratch.work.root, files_below(scratch.base.root), changed)
    )
    there = [one for one in named if ".py" in one and not any(covers(file, one) for file in found)]
    return (*found, *there) or files_that_finish(state)


def command_for(state: State, planned: PlannedRun) -> str:
    check = check_for(state, planned)
    if planned.purpose == "run" or isinstance(check, Serves):
        return state.plan.current.run if state.plan.current else ""
    if isinstance(check, ExampleHolds):
        return "an example that is held back" if check.held else check.call
    return check.command if isinstance(check, CommandSucceeds) else tests_command(state) or " ".join(PYTEST)


def check_for(state: State, planned: PlannedRun) -> Check | None:
    checks = {item.id: item.check for item in state.plan.items}
    return (
        checks.get(planned.about) if planned.purpose in ("check", "hollow check", "check on base") else None
    )


def mode_for(state: State, planned: PlannedRun, texts: Mapping[str, str]) -> Mode | None:
    """The mode of the run. A check that is a command runs to its end."""
    check = check_for(state, planned)
    if isinstance(check, Serves):
        return Server(path=check.path, needed=True, holds=check.prints)
    if planned.purpose == "run":
        return mode_of_run(state, texts)
    return mode_of_tests(texts)


def needs_doubt(state: State) -> bool:
    """Whether passing tests must be run again without the program."""
    version = state.work.version
    program = version is not None and any(not is_test(file.path) for file in version.files)
    return (
        (program or has_baseline(state))
        and tests_are_evidence(state)
        and bool(tests_of(state).passed)
        and control_of_tests(state) is None
    )


def mount_over_origin(job: Job, scratch: Scratch) -> Job:
    return replace(
        job,
        mounted_at=os.path.realpath(scratch.origin),
        shared=scratch.shared,
        setup=str(scratch.setup) if scratch.was_set_up() else "",
    )


async def show_delta(scratch: Scratch, delta: WorkspaceDelta, blobs: Blobs) -> None:
    contents = {file.path: await blobs.get(file.sha256) for file in delta.files}
    await in_thread(lambda: scratch.show(delta, contents))


def evidence_job(state: State, started: RunStarted, workspace: Workspace) -> Job:
    folder, limits = str(workspace.root), state.team.limits
    testing = started.purpose in SUITES and not tests_command(state)
    if started.purpose in SUITES and started.purpose != "tests alone":
        limits = suite_limits(state)
    check = check_for(state, PlannedRun(purpose=started.purpose, about=started.about))
    typed = started.purpose in SUITES and not testing
    words = shell_free_command(
        reporting_command(started.command, npm_test_script(folder)) if typed else started.command
    )
    return Job(
        command=("python", "-c", example_driver(check.call)) if isinstance(check, ExampleHolds) else words,
        workspace=folder,
        limits=limits,
        tests=testing,
        only=started.only,
        readable=state.work.data,
        network=state.team.network,
        home=state.workspace,
        warm=state.team.warm,
    )


def npm_test_script(folder: str) -> str:
    """The test script of the folder's package.json."""
    return script_of_package(Workspace(Path(folder)).read("package.json"))


def control_job(state: State, started: RunStarted, workspace: Workspace) -> Job:
    """The job of a control run, with a time limit near the real program's time, since a changed one may never end."""
    job = evidence_job(state, started, workspace)
    took = max((run.result.seconds for run in state.work.runs if run.purpose not in CONTROLS), default=0.0)
    return replace(job, limits=replace(job.limits, seconds=min(job.limits.seconds, 10.0 + 2 * took)))


def shell_free_command(command: str) -> tuple[str, ...]:
    """Split a plain call of Python into words, so that it needs no shell; run anything else by `sh -c`."""
    words = command.split()
    plain = words[:1] in (["python"], ["python3"]) and PLAIN_WORDS.fullmatch(command) is not None
    return tuple(words) if plain else ("sh", "-c", command)


async def forward(receive: MemoryObjectReceiveStream[bytes], bus: Bus, chat: str, speaker: str) -> None:
    async with receive:
        async for chunk in receive:
            message = ENCODER.encode(Live(speaker=speaker, output=chunk.decode(errors="replace")))
            await bus.publish(live_topic(chat), message, speaker)


async def rehearse_version(state: State, version: VersionWritten, run_context: RunContext) -> State:
    """Run and check a version in a temporary context; the events are folded but not recorded."""
    rehearsal = Rehearsal(state)
    await rehearsal.record(version)
    return await rehearsal.play(runner_agent(RoleSpec(name="runner", role="runner"), run_context))
