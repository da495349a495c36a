"""How programs run: the newest version in its folder, a job for each purpose, live output, the files that stay."""

import os
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from anyio import create_memory_object_stream, create_task_group
from anyio.streams.memory import MemoryObjectReceiveStream
from msgspec.structs import replace

from septet.agents.ask import ENCODER, Live, live_topic
from septet.agents.control_folders import (
    control_folder,
    part_of_version,
    program_of,
    tree_folder,
)
from septet.agents.deletions import (
    CALLS,
    MOST_SECONDS,
    asked_calls,
    calls_of_examples,
    deletion_command,
    deletion_seconds,
    deletion_task,
    heard_calls,
    report_of,
)
from septet.common.secrets import mask_secrets
from septet.domain.events import (
    RunFinished,
    RunStarted,
)
from septet.domain.files import FileChange, WorkspaceDelta
from septet.domain.plans import (
    Check,
    CommandSucceeds,
    ExampleHolds,
    plan_text,
)
from septet.domain.runs import (
    CONTROLS,
    HOLLOW,
    Job,
    Limits,
    Mode,
    PlannedRun,
    Purpose,
    RunResult,
)
from septet.domain.state import State
from septet.ports import Blobs, Bus, Packages, Sandbox
from septet.team.acceptance import OUTCOME_MARK, example_driver
from septet.team.baseline import (
    asked_tests,
    tests_command,
    tests_of,
)
from septet.team.controls import MUTANTS, REACHED, only_reached, transformed_sources
from septet.team.deletions import with_switches
from septet.team.layouts import (
    first_snapshot,
    layout_of,
    made_by_run,
    named_products,
    traces_of,
    workspace_delta,
)
from septet.team.suite_runners import parse_suite_output, reporting_command, script_of_package
from septet.workspace.files import Workspace, in_thread, make_folder, path_and_parents, path_problem
from septet.workspace.listing import is_secret
from septet.workspace.scratch import Scratch
from septet.workspace.snapshots import hidden_in

Stream = Literal["stdout", "stderr"]
BASELINE_SECONDS = 600.0
MOST_KEPT = 1_000
MOST_BYTES = 256 << 20
"""Limits of the files of one run that are stored as blobs."""
SUITES: frozenset[Purpose] = frozenset(
    {"tests", "tests alone", "tests as found", "tests again", "tests on base", "baseline"}
)
PLAIN_WORDS = re.compile(r"[\w ./=:@%+,-]+")


class Mask(NamedTuple):
    """Hides secrets in what a program of the person's project prints: it is stored and shown to models.

    `values` are those of secret files that the program could read. What stands in the `known` text, such as the plan's
    checks, is no secret to the team.
    """

    values: Collection[str]
    known: str

    def of_result(self, result: RunResult) -> RunResult:
        stdout, stderr = (
            mask_secrets(text, self.values, self.known) for text in (result.stdout, result.stderr)
        )
        return replace(result, stdout=stdout, stderr=stderr)

    def of_bytes(self, content: bytes) -> bytes:
        text = content.decode(errors="surrogateescape")
        return mask_secrets(text, self.values, self.known).encode(errors="surrogateescape")


class OutputCapture:
    """Captures each output stream up to its limit."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.streams: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

    def receive(self, stream: Stream, piece: bytes) -> None:
        kept = self.streams[stream]
        kept += piece[: max(0, self.limits.output - len(kept))]

    async def with_blobs(self, result: RunResult, blobs: Blobs, mask: Mask | None = None) -> RunResult:
        """Store streams that the result truncates as blobs, and add their addresses."""
        return replace(
            result,
            stdout_blob=await self._blob("stdout", blobs, mask),
            stderr_blob=await self._blob("stderr", blobs, mask),
        )

    async def _blob(self, stream: Stream, blobs: Blobs, mask: Mask | None) -> str:
        content = bytes(self.streams[stream])
        if len(content) <= self.limits.kept_output:
            return ""
        return await blobs.put(await in_thread(lambda: mask.of_bytes(content)) if mask else content)


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
        self.early_result: Callable[[State], Awaitable[RunFinished | None]] | None = None
        """The result of a baseline that runs beside the work of others, if one does."""

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
        elif started.purpose == "special cases":
            result = await self.find_special_cases(state, started)
        elif takes is not None:
            async with tree_folder(state, self.blobs, self.scratch, takes) as folder:
                job = replace(self.mounted(evidence_job(state, started, folder)), mode=mode)
                result = await self.run_reported(job, state, speaker, started)
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
        program = transformed_sources(await program_of(state, self.blobs, self.scratch), control)
        async with control_folder(state, self.blobs, self.scratch, program) as folder:
            job = replace(self.mounted(control_job(state, started, folder)), mode=mode)
            result = replace(await self.run_reported(job, state, speaker, started), changes=())
            if control == "results" and result.tests is not None:
                reached = await folder.content(REACHED) or b""
                tests = only_reached(result.tests, reached.decode(errors="replace"))
                result = replace(result, tests=tests)
        return result

    async def find_special_cases(self, state: State, started: RunStarted) -> RunResult:
        """Hear what the tests ask of the program, then ask it that and more, part by part taken away."""
        program = await program_of(state, self.blobs, self.scratch)
        switched = with_switches(program, await self.base_texts(program))
        begun = time.monotonic()
        async with control_folder(state, self.blobs, self.scratch, switched.sources) as folder:
            path, calls, lost = list[str](), calls_of_examples(state), tuple[str, ...]()
            if asked_tests(state) is not None and tests_of(state).passed:
                tests = replace(started, purpose="tests alone")
                told = await self.sandbox.run(self.mounted(control_job(state, tests, folder)))
                passed = frozenset(tests_of(state).passed)
                lost = tuple(test for test in told.report.failed if test in passed)
                path, heard = heard_calls(await folder.content(CALLS) or b"")
                calls += heard
            asked = asked_calls(switched, calls)
            said = bytearray()
            if asked.tested:
                job = Job(
                    command=deletion_command(),
                    workspace=str(folder.root),
                    limits=replace(state.team.limits, seconds=5 * MOST_SECONDS),
                    stdin=deletion_task(asked, switched, path, deletion_seconds(state)),
                    home=state.workspace,
                )
                await self.sandbox.run(
                    self.mounted(job), lambda stream, piece: said.extend(piece if stream == "stdout" else b"")
                )
        wanted = "\n".join([state.goal, *(one.text for one in state.plan.wishes)])
        found = report_of(asked, switched, bytes(said), wanted)
        text = ENCODER.encode(replace(found, lost=lost)).decode()
        result = RunResult(exit_code=0, stdout=text, seconds=time.monotonic() - begun)
        if self.scratch is None:
            return result
        return Mask(await in_thread(self.scratch.secret_values), known_text(state)).of_result(result)

    async def run_in_workspace(
        self, state: State, speaker: str, started: RunStarted, mode: Mode | None
    ) -> RunResult:
        """Run in the workspace itself, after what an earlier run may have done to it is undone."""
        await in_thread(lambda: make_folder(self.workspace.root))  # it may have lost its permissions
        if started.purpose in ("run", "tests", "check"):  # or what it is judged by may have been rewritten
            await self.write_newest(state)
            await self.remove_traces(state)
        job = replace(self.mounted(evidence_job(state, started, self.workspace)), mode=mode)
        result = await self.run_reported(job, state, speaker, started)
        old = any(change.kind == "changed" for change in result.changes)
        hidden = await self.hidden_paths(state) if old else set[str]()
        return replace(result, changes=await self.keep_changes(result.changes, hidden))

    async def run_reported(self, job: Job, state: State, speaker: str, started: RunStarted) -> RunResult:
        """Run the job, and add the outcome of each test if the project's test runner reports it."""
        result = await self.run_live(job, state, speaker)
        if job.tests or started.purpose not in SUITES:
            return result
        whole = await self.blobs.get(result.stdout_blob) if result.stdout_blob else result.stdout.encode()
        script = await in_thread(lambda: npm_test_script(job.workspace))
        output = whole.decode(errors="replace")
        return replace(result, tests=parse_suite_output(started.command, script, output))

    async def remove_traces(self, state: State) -> None:
        """A check begins with the version and what the plan's run has made: no test or check tells another anything."""
        traces, made = traces_of(state), made_by_run(state)
        for path in sorted(traces, key=lambda one: one.count("/"), reverse=True):
            await in_thread(lambda path=path: self.remove(path, traces[path]))
        await self.put_back({path: digest for path, digest in made.items() if digest})

    async def keep_named_traces(self, state: State) -> None:
        """In the end only those files of tests and checks stay that the plan names: others are nobody's product."""
        await self.remove_traces(state)
        traces = traces_of(state)
        await self.put_back(
            {path: traces[path] for path in named_products(state) & traces.keys() if traces[path]}
        )

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

    async def base_texts(self, paths: Iterable[str]) -> dict[str, str]:
        """What these files held before the chat changed them. A plan may name what is no path of a file."""
        valid = [path for path in paths if path_problem(path) is None] if self.scratch else []
        contents = {path: await self.scratch.base.content(path) for path in valid} if self.scratch else {}
        return {path: text.decode(errors="replace") for path, text in contents.items() if text is not None}

    def mounted(self, job: Job) -> Job:
        """The job with the copy mounted at the path of the person's folder."""
        return mount_over_origin(job, self.scratch) if self.scratch else job

    async def run_live(self, job: Job, state: State, speaker: str) -> RunResult:
        result: RunResult | None = None
        capture = OutputCapture(job.limits)
        send, receive = create_memory_object_stream[bytes](float("inf"))

        def listen(stream: Stream, piece: bytes) -> None:
            capture.receive(stream, piece)
            send.send_nowait(piece)

        async with create_task_group() as tasks:
            tasks.start_soon(forward, receive, self.bus, state.chat, speaker)
            with send:
                result = await self.sandbox.run(job, listen)
        assert result is not None, "a task group that ends without an error has set the result"
        if self.scratch is None:  # there is nothing of the person's but what the team was given
            return await capture.with_blobs(result, self.blobs)
        mask = Mask(await in_thread(self.scratch.secret_values), known_text(state))
        return await capture.with_blobs(mask.of_result(result), self.blobs, mask)

    @property
    def harmless(self) -> tuple[str, ...]:
        """Patterns of files that look like secrets and, as the person says, are none."""
        return self.scratch.manifest.secrets.harmless if self.scratch else ()

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
        if content is None or is_secret(change.path, content, self.harmless):
            return False
        return await self.blobs.put(content) == change.sha256


def known_text(state: State) -> str:
    """What the team has been told by the person and the plan."""
    return f"{state.goal}\n{plan_text(state.plan.current) if state.plan.current else ''}"


def suite_limits(state: State) -> Limits:
    """The limits of the project's test suite: minutes on the base, then twice the time that it took there."""
    limits, base = state.team.limits, state.base
    if base is None:
        return limits
    took = base.baseline.result.seconds if base.baseline else BASELINE_SECONDS / 2
    seconds = max(limits.seconds, 2 * took)
    return replace(limits, seconds=seconds, cpu_seconds=max(limits.cpu_seconds, seconds))


def check_for(state: State, planned: PlannedRun) -> Check | None:
    checks = {item.id: item.check for item in state.plan.items}
    return (
        checks.get(planned.about) if planned.purpose in ("check", "hollow check", "check on base") else None
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
    command = check.command if isinstance(check, CommandSucceeds) else started.command
    words = shell_free_command(reporting_command(command, npm_test_script(folder)) if typed else command)
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
    """Publish output as it comes, but for the line in which an example's result is passed to what compares it."""
    async with receive:
        async for chunk in receive:
            if output := chunk.decode(errors="replace").partition(OUTCOME_MARK)[0]:
                await bus.publish(
                    live_topic(chat), ENCODER.encode(Live(speaker=speaker, output=output)), speaker
                )
