"""What the tools of a call work on: the newest version's files, wishes for the next one, and the sandbox."""

import shlex

from septet.agents.replies import sources
from septet.agents.runner import RunContext, provide
from septet.domain.events import RunStarted, ToolCalled
from septet.domain.runs import RunResult, name_of
from septet.domain.state import State
from septet.ports import Record
from septet.team.context import Context, context_of
from septet.team.run_modes import mode_of_run
from septet.workspace.files import in_thread, path_problem
from septet.workspace.listing import FolderTexts


class CallContext:
    """The tool context of one call. What it wishes is not on disk yet."""

    def __init__(
        self,
        state: State,
        record: Record,
        texts: FolderTexts,
        run_context: RunContext,
        call: ToolCalled,
        project: Context,
    ) -> None:
        self._state = state
        self._record = record
        self._ran_before = [run.result for run in state.runs if run.id == call.id]
        self._run_context = run_context
        self.call = call
        self.texts = texts
        self.project = project
        self.wished: dict[str, str | None] = {}

    def write(self, path: str, text: str | None) -> None:
        self.wished[path] = text

    def exists(self, path: str) -> bool:
        return path in self.texts.known or (path_problem(path) is None and bool(self._content(path)))

    def _content(self, path: str) -> bytes:
        return self._run_context.workspace.read(path) or b""

    async def execute(self, path: str) -> RunResult:
        if self._ran_before:
            return self._ran_before[0]
        await self._run_context.write_newest(self._state)
        command = f"python {shlex.quote(path)}"
        tree = self._state.version.tree if self._state.version else ""
        text = self.texts.known.get(path) or self._content(path).decode(errors="replace")
        mode = mode_of_run(self._state, {path: text})
        started = RunStarted(
            id=self.call.id,
            purpose="script",
            about=path,
            command=command,
            tree=tree,
            mode=name_of(mode),
        )
        await self._provide()
        ran = await self._run_context.run(self._state, self.call.by, started, mode)
        self._state = await self._record(ran)
        return ran.result

    async def _provide(self) -> None:
        """Nobody can be asked in the middle of a call: what is missing is installed only where that is agreed."""
        if self._state.team.packages == "auto":
            packages = self._run_context.packages
            self._state = await provide(self._state, self._record, packages, self.texts.known)


async def call_context(
    state: State, record: Record, run_context: RunContext, call: ToolCalled, project: Context | None = None
) -> CallContext:
    """What the tools of that call work on; `project` is what actions see, where the way knows more of it."""
    known = await sources(state, run_context.blobs)
    hidden = await run_context.hidden_paths(state)
    texts = await in_thread(lambda: FolderTexts(known, run_context.workspace, hidden))
    return CallContext(state, record, texts, run_context, call, project or context_of(state, known, {}))
