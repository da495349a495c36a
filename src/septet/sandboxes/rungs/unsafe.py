"""No sandbox, if the person asks for that: limits apply and children are killed, but nothing is protected."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from septet.common.temporary import temporary_folder
from septet.domain.runs import Job, RunResult
from septet.ports import Listener
from septet.sandboxes.cgroups import ControlGroup, make_control_group
from septet.sandboxes.environment import environment
from septet.sandboxes.inside.reaper import reaper_command
from septet.sandboxes.limits import shell_command, ulimit_script
from septet.sandboxes.process import RunMonitor, RunningProgram, spawn
from septet.sandboxes.runs import execute_job
from septet.sandboxes.view import existing_folder


@dataclass(frozen=True, slots=True)
class UnsafeLocal:
    """Runs a job as this user, on this machine, with this network."""

    rung: str = "none (unsafe-local)"

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        return await execute_job(job, existing_folder(job.workspace), self.rung, _launch, listen)


@asynccontextmanager
async def _launch(
    job: Job, workspace: Path, monitor: RunMonitor, inherited: tuple[int, ...] = ()
) -> AsyncGenerator[RunningProgram]:
    with temporary_folder("run") as home, make_control_group(job.limits) as group:
        variables = environment(job.environment, str(home), str(home))
        with spawn(_command(job, group), variables, workspace, inherited) as process:
            yield RunningProgram(process, process.pid, kill_signal=signal.SIGTERM, group=group)


def _command(job: Job, group: ControlGroup) -> list[str]:
    program = shell_command(ulimit_script(job.limits), job.command)
    return shell_command(group.enter_script(), reaper_command(program))
