"""One run from start to result, the same for every rung: survey, start, watch, survey, verdict."""

import time
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from anyio import to_thread

from septet.domain.files import FileChange
from septet.domain.runs import Bound, Job, RunResult
from septet.ports import Listener
from septet.sandboxes import survey as files
from septet.sandboxes.limits import bound_of, outgrown, written
from septet.sandboxes.process import Started, Watch, supervise
from septet.sandboxes.test_report import OpenChannel, pipe_channel

_WRITTEN_PER_LIMIT = 4
_SMALL = 100


class Launch(Protocol):
    """Starts the program of a job, which also gets the descriptors to inherit, under their numbers.

    On leaving, raises SandboxFailed if it was the sandbox that broke.
    """

    def __call__(
        self, job: Job, workspace: Path, watch: Watch, inherited: tuple[int, ...] = ()
    ) -> AbstractAsyncContextManager[Started]: ...


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
    job: Job,
    workspace: Path,
    rung: str,
    launch: Launch,
    listen: Listener | None,
    open_channel: OpenChannel = pipe_channel,
) -> RunResult:
    disk = Disk(workspace, await _surveyed(workspace), job)
    watch = Watch.of(job.limits, listen)
    with open_channel() if job.tests else nullcontext() as channel:
        job = channel.given(job) if channel else job
        async with launch(job, workspace, watch, channel.inherited if channel else ()) as started:
            await supervise(started, job.stdin, watch, disk.outgrown, channel)
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
        others=files.others(disk.before, after),
        rung=rung,
        tests=channel.report() if channel else None,
    )


def _bound(code: int, watch: Watch, after: files.Survey, disk: Disk) -> Bound | None:
    if disk.too_big(after):
        return "disk"
    return bound_of(code, watch.stderr.text(), after, watch.limits) or (watch.met if code else None)


def _exit_code(status: int) -> int:
    """As a shell tells it: a signal is 128 and its number."""
    return 128 - status if status < 0 else status
