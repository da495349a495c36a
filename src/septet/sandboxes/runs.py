"""One run from start to result, the same for every rung: survey, start, watch, survey, verdict."""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from septet.domain.files import FileChange
from septet.domain.runs import Bound, Job, RunResult
from septet.ports import Listener
from septet.sandboxes import workspace as files
from septet.sandboxes.supervision import Started, Watch, supervise
from septet.sandboxes.usage import written
from septet.sandboxes.verdict import bound_of, outgrown

_WRITTEN_PER_LIMIT = 4
_SMALL = 100

Launch = Callable[[Job, Path, Watch], AbstractAsyncContextManager[Started]]
"""Starts the program of a job; on leaving, raises SandboxFailed if it was the sandbox that broke."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A workspace as it was before a run, and whether a run has outgrown its part of the disk."""

    workspace: Path
    before: files.Survey
    job: Job

    def outgrown(self, pids: tuple[int, ...]) -> bool:
        """Also counts what was written: a file deleted while open, or hidden deep, is in no survey."""
        if written(pids) > _WRITTEN_PER_LIMIT * self.job.limits.disk:
            return True
        return self.too_big(files.survey(self.workspace))

    def compared(self) -> tuple[files.Survey, tuple[FileChange, ...]]:
        after = files.survey(self.workspace)
        return after, files.changes(self.workspace, self.before, after)

    def too_big(self, after: files.Survey) -> bool:
        return outgrown(self.before, after, self.job.limits)


async def _surveyed(workspace: Path) -> files.Survey:
    """A small workspace is looked through faster than a thread is woken."""
    return files.quick_survey(workspace, _SMALL) or await to_thread.run_sync(files.survey, workspace)


async def _compared(disk: Disk) -> tuple[files.Survey, tuple[FileChange, ...]]:
    if files.quick_survey(disk.workspace, _SMALL) == disk.before:
        return disk.before, ()
    return await to_thread.run_sync(disk.compared)


async def carry_out(
    job: Job, workspace: Path, rung: str, launch: Launch, listen: Listener | None
) -> RunResult:
    disk = Disk(workspace, await _surveyed(workspace), job)
    watch = Watch.of(job.limits, listen)
    async with launch(job, workspace, watch) as started:
        await supervise(started, job.stdin, watch, disk.outgrown)
        seconds = time.monotonic() - watch.began
    code = _exit_code(started.process.returncode) if watch.exit_code is None else watch.exit_code
    after, changes = await _compared(disk)
    return RunResult(
        exit_code=code,
        stdout=watch.stdout.text(),
        stderr=watch.stderr.text(),
        seconds=round(seconds, 4),
        stopped_by=watch.stopped_by or _bound(code, watch, after, disk),
        changes=changes,
        rung=rung,
    )


def _bound(code: int, watch: Watch, after: files.Survey, disk: Disk) -> Bound | None:
    if disk.too_big(after):
        return "disk"
    return bound_of(code, watch.stderr.text(), after, watch.limits) or (watch.met if code else None)


def _exit_code(status: int) -> int:
    """As a shell tells it: a signal is 128 and its number."""
    return 128 - status if status < 0 else status
