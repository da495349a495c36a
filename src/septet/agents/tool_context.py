"""The context of a tool call: the newest files with the turn's edits, the requested changes, and the sandbox."""

import os
import shlex
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from septet.agents.reply_files import sources
from septet.agents.run_context import RunContext
from septet.agents.runner import provide, run_and_check, set_up, take_early_baseline
from septet.common.text import pluralize
from septet.domain.events import (
    Event,
    MemberBriefed,
    RunFinished,
    RunStarted,
    ToolAnswered,
    ToolCalled,
    VersionWritten,
)
from septet.domain.files import FileChange, tree_of
from septet.domain.plans import without_held
from septet.domain.reduce import reduce_event
from septet.domain.runs import DIAGNOSTIC_PURPOSES, Mode, RunResult, mode_name
from septet.domain.state import State
from septet.ports import Record
from septet.team.briefing import run_section
from septet.team.context import Context, context_of
from septet.team.evidence import other_shortcomings, result_lines, shortcomings
from septet.team.layouts import deleted_after
from septet.team.run_modes import mode_of_run
from septet.tools.registry import ToolResult
from septet.workspace.changes import files_after
from septet.workspace.files import in_thread, path_problem
from septet.workspace.listing import LOOKED_INTO, FolderTexts, matches_any, secret_reason


def next_version(state: State, changes: tuple[FileChange, ...], note: str) -> VersionWritten:
    files = files_after({file.path: file for file in state.work.files}, changes)
    number, tree = len(state.work.versions) + 1, tree_of(files)
    deleted = deleted_after(state, files, (one.path for one in changes if one.kind == "deleted"))
    return VersionWritten(number=number, files=files, deleted=deleted, tree=tree, note=note)


def with_edits(state: State) -> State:
    """The state as if the open turn's changes were already a version."""
    edited = state
    for call in state.floor.turn.calls if state.floor.turn else ():
        result = state.talk.tool_results.get(call.id)
        if result is not None and result.changes:
            edited = reduce_event(edited, next_version(edited, result.changes, call.name))
    return edited


def files_read(state: State, member: str) -> dict[str, str]:
    """The files that a member has read or written in its calls, with the sha256 of the content that it knows."""
    calls: dict[str, ToolCalled] = {}
    known: dict[str, str] = {}
    for said in state.talk.messages:
        if isinstance(said, ToolCalled) and said.by == member:
            calls[said.id] = said
        elif isinstance(said, ToolAnswered) and said.id in calls:
            changed = {change.path: change.sha256 for change in said.changes}
            known |= {file.path: file.sha256 for file in said.shown if file.path not in changed}
            whole = calls[said.id].name == "write"
            known |= {path: digest for path, digest in changed.items() if whole or path in known}
        elif isinstance(said, MemberBriefed) and said.member == member and said.shortens:
            known = {}  # the answers were removed from the member's messages
    return known


class CallContext:
    """The tool context of one call. The changes that it requests are not on disk yet."""

    def __init__(
        self,
        state: State,
        record: Record,
        texts: FolderTexts,
        run_context: RunContext,
        call: ToolCalled,
        project: Context,
    ) -> None:
        self._edited = with_edits(state)
        self._record = record
        self._ran_before = [run.result for run in state.work.runs if run.id == call.id]
        self._read = files_read(state, call.by)
        self._run_context = run_context
        self.call = call
        self.texts = texts
        self.project = project
        self.wished: dict[str, str | None] = {}
        self.made: tuple[FileChange, ...] = ()
        """The files that the call's program changed, if it ended well."""

    @property
    def root(self) -> Path:
        return self._run_context.workspace.root

    @property
    def has_base(self) -> bool:
        """Whether the team works on a copy of the person's folder, and versions are differences from it."""
        return self._run_context.scratch is not None

    def write(self, path: str, text: str | None) -> None:
        self.wished[path] = text

    def inside(self, path: str) -> str:
        named = self._edited.workspace
        for folder in (named, os.path.realpath(named)):
            if folder and f"{path}/".startswith(f"{folder}/"):
                return path[len(folder) :].strip("/")
        return path

    def exists(self, path: str) -> bool:
        return path in self.texts.known or (path_problem(path) is None and bool(self._content(path)))

    def secret_reason(self, path: str) -> str:
        if matches_any(path, self._run_context.harmless) or path in self.texts.known:
            return ""
        return secret_reason(path, self._content(path)) if path_problem(path) is None else ""

    def has_read(self, path: str) -> bool:
        known = self.texts.known.get(path)
        if known is not None and path not in self._edited.work.person_files:
            return True  # the team wrote it
        content = self._content(path) if known is None else known.encode()
        return self._read.get(path) == sha256(content).hexdigest()

    def _content(self, path: str) -> bytes:
        return self._run_context.workspace.read(path) or b""

    async def execute(self, path: str) -> RunResult:
        text = self.texts.known.get(path) or self._content(path).decode(errors="replace")
        mode = mode_of_run(self._edited, {path: text})
        return await self._run(f"python {shlex.quote(path)}", path, mode)

    async def run(self, command: str, seconds: float = 0) -> RunResult:
        limits = self._edited.team.limits
        usual = limits.seconds
        bound = replace(limits, seconds=min(seconds, usual)) if seconds else limits
        team = replace(self._edited.team, limits=bound)
        return await self._run(command, "", None, replace(self._edited, team=team))

    async def _run(
        self, command: str, about: str, mode: Mode | None, state: State | None = None
    ) -> RunResult:
        if self._ran_before:
            return self._with_made(self._ran_before[0])
        await self._run_context.write_newest(self._edited)
        await self._provide()
        state = state or self._edited
        started = RunStarted(
            id=self.call.id,
            purpose="script",
            about=about,
            command=command,
            tree=state.work.version.tree if state.work.version else "",
            mode=mode_name(mode),
        )
        ran = await self._run_context.run(state, self.call.by, started, mode)
        await self._record(ran)
        return self._with_made(ran.result)

    def _with_made(self, result: RunResult) -> RunResult:
        self.made = result.changes if result.succeeded else ()
        return result

    async def check(self) -> ToolResult:
        """Run all checks as the runner would; the runs are logged as a tool's, and are no evidence."""
        if self._edited.work.version is None:
            return ToolResult(text="there is nothing to check yet", summary="nothing", failed=True)
        self._edited = with_edits(await take_early_baseline(self._edited, self._record, self._run_context))
        seen = without_questions(with_open_checks(self._edited))

        async def observe(event: Event) -> State:
            nonlocal seen
            seen = reduce_event(seen, event)
            if isinstance(event, RunFinished) and event.purpose not in DIAGNOSTIC_PURPOSES:
                number = f"{self.call.id} {event.title}"
                await self._record(replace(event, id=number, purpose="script", about=event.title))
            return seen

        seen = await run_and_check(self.call.by, seen, observe, self._run_context, whole=False)
        return checked(seen)

    async def _provide(self) -> None:
        """Install missing packages if that is approved already: the person cannot be asked during a call."""
        if self._edited.team.packages == "auto":
            await set_up(self._edited, self._record, self._run_context)
            await provide(self._edited, self._record, self._run_context, self.texts.known)


def without_questions(state: State) -> State:
    """Nobody can be asked about packages during a call: programs run with what is there."""
    team = state.team
    return replace(state, team=replace(team, packages="off")) if team.packages == "ask" else state


def with_open_checks(state: State) -> State:
    """Leave out held-back examples, which a member could find out by repeated calls."""
    plan = state.plan.current
    return replace(state, plan=replace(state.plan, current=without_held(plan))) if plan else state


def checked(state: State) -> ToolResult:
    """The results of the checks, and the output of failed runs."""
    troubles = shortcomings(state)
    failed = [
        run for run in state.work.runs if not run.result.succeeded and run.purpose not in DIAGNOSTIC_PURPOSES
    ]
    others = "; ".join(other_shortcomings(state)) or "see what is not met"
    verdict = f"not done: {others}" if troubles else "everything that a machine can check is met"
    text = "\n".join([verdict, *result_lines(state), *map(run_section, failed)])
    summary = f"{pluralize(len(troubles), 'trouble')}: {troubles[0]}" if troubles else "all met"
    return ToolResult(text=text, summary=summary, failed=bool(troubles))


async def call_context(
    state: State,
    record: Record,
    run_context: RunContext,
    call: ToolCalled,
    project: Context | None = None,
    texts_known: Mapping[str, str] | None = None,
) -> CallContext:
    """Build the context of a call; `project` and `texts_known` are given if the way knows more than the version."""
    known = await sources(with_edits(state), run_context.blobs) if texts_known is None else texts_known
    hidden = await run_context.hidden_paths(state)
    texts = await in_thread(
        lambda: FolderTexts(known, run_context.workspace, hidden, LOOKED_INTO, run_context.harmless)
    )
    return CallContext(state, record, texts, run_context, call, project or context_of(state, known, {}))
