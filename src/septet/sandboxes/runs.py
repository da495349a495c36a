"""One run from start to result, the same for every rung: survey, start, monitor, survey, limits."""

import time
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from anyio import to_thread

from septet.domain.files import FileChange
from septet.domain.runs import Job, LimitName, RunResult
from septet.ports import Listener
from septet.sandboxes import survey as files
from septet.sandboxes.limits import bytes_written, exceeds_disk, limit_from_exit
from septet.sandboxes.process import OpenChannel, RunMonitor, RunningProgram, pipe_channel, supervise

_MAX_WRITES_PER_LIMIT = 4
_SMALL_WORKSPACE = 100


class Launch(Protocol):
    """Starts the program of a job, which inherits the descriptors under their numbers.

    On exit, raises SandboxFailed if the sandbox itself failed.
    """

    def __call__(
        self, job: Job, workspace: Path, monitor: RunMonitor, inherited: tuple[int, ...] = ()
    ) -> AbstractAsyncContextManager[RunningProgram]: ...


@dataclass(frozen=True, slots=True)
class WorkspaceDisk:
    """The survey of a workspace before a run, and whether the run exceeds its disk limit."""

    workspace: Path
    before: files.Survey
    job: Job

    def exceeds_limit(self, pids: tuple[int, ...]) -> bool:
        """Also counts bytes written: a survey misses files that are deleted while open or very deep."""
        if bytes_written(pids) > _MAX_WRITES_PER_LIMIT * self.job.limits.disk:
            return True
        return self.is_too_big(files.survey(self.workspace))

    def compare(self) -> tuple[files.Survey, tuple[FileChange, ...]]:
        after = files.survey(self.workspace)
        return after, files.changes(self.workspace, self.before, after)

    def is_too_big(self, after: files.Survey) -> bool:
        return exceeds_disk(self.before, after, self.job.limits)


async def _survey(workspace: Path) -> files.Survey:
    """Survey a small workspace directly: that is faster than waking a thread."""
    return files.quick_survey(workspace, _SMALL_WORKSPACE) or await to_thread.run_sync(
        files.survey, workspace
    )


async def _compare(disk: WorkspaceDisk) -> tuple[files.Survey, tuple[FileChange, ...]]:
    if files.quick_survey(disk.workspace, _SMALL_WORKSPACE) == disk.before:
        return disk.before, ()
    return await to_thread.run_sync(disk.compare)


async def execute_job(
    job: Job,
    workspace: Path,
    rung: str,
    launch: Launch,
    listen: Listener | None,
    open_channel: OpenChannel = pipe_channel,
) -> RunResult:
    """Run a job in its workspace with the rung's way to launch it."""
    disk = WorkspaceDisk(workspace, await _survey(workspace), job)
    monitor = RunMonitor.of(job.limits, listen)
    with open_channel() if job.tests else nullcontext() as channel:
        job = channel.prepare(job) if channel else job
        async with launch(job, workspace, monitor, channel.inherited_fds if channel else ()) as started:
            await supervise(started, job.stdin, monitor, disk.exceeds_limit, channel)
            seconds = time.monotonic() - monitor.start_time
    code = _exit_code(started.process.returncode) if monitor.exit_code is None else monitor.exit_code
    after, changes = await _compare(disk)
    return RunResult(
        exit_code=code,
        stdout=monitor.stdout.text(),
        stderr=monitor.stderr.text(),
        seconds=round(seconds, 4),
        stopped_by=monitor.stopped_by or _limit_reached(code, monitor, after, disk),
        changes=changes,
        others=files.others(disk.before, after),
        rung=rung,
        tests=channel.report() if channel else None,
    )


def _limit_reached(
    code: int, monitor: RunMonitor, after: files.Survey, disk: WorkspaceDisk
) -> LimitName | None:
    if disk.is_too_big(after):
        return "disk"
    return limit_from_exit(code, monitor.stderr.text(), after, monitor.limits) or (
        monitor.group_limit if code else None
    )


def _exit_code(status: int) -> int:
    """The exit code as a shell reports it: 128 plus the number of a signal."""
    return 128 - status if status < 0 else status
