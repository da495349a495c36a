"""No sandbox, for a person who asked for that: limits hold and children die, but nothing is protected."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from septet.common.temporary import temporary_folder
from septet.domain.runs import Job, RunResult
from septet.ports import Listener
from septet.sandboxes.cgroups import Cage, caged
from septet.sandboxes.environment import environment
from septet.sandboxes.inside.reaper import command_of_reaper
from septet.sandboxes.limits import by_shell, limiting
from septet.sandboxes.process import Started, Watch, spawned
from septet.sandboxes.runs import carry_out
from septet.sandboxes.view import existing_folder


@dataclass(frozen=True, slots=True)
class UnsafeLocal:
    """Runs a job as this user, on this machine, with this network."""

    rung: str = "none (unsafe-local)"

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        return await carry_out(job, existing_folder(job.workspace), self.rung, _launch, listen)


@asynccontextmanager
async def _launch(
    job: Job, workspace: Path, watch: Watch, inherited: tuple[int, ...] = ()
) -> AsyncGenerator[Started]:
    with temporary_folder("run") as home, caged(job.limits) as cage:
        variables = environment(job.environment, str(home), str(home))
        with spawned(_command(job, cage), variables, workspace, inherited) as process:
            yield Started(process, process.pid, killer=signal.SIGTERM, cage=cage)


def _command(job: Job, cage: Cage) -> list[str]:
    program = by_shell(limiting(job.limits), job.command)
    return by_shell(cage.entering(), command_of_reaper(program))
