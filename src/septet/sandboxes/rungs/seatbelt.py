"""The rung for macOS: sandbox-exec with a strict profile. Written from its manual, not tested yet."""

import signal
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from septet.common.temporary import temporary_folder
from septet.domain.runs import Job, RunResult
from septet.errors import NoSandbox
from septet.ports import Listener
from septet.sandboxes import view
from septet.sandboxes.environment import environment
from septet.sandboxes.inside.reaper import reaper_command
from septet.sandboxes.limits import shell_command, ulimit_script
from septet.sandboxes.process import RunMonitor, RunningProgram, spawn
from septet.sandboxes.runs import execute_job

_PROGRAM = "/usr/bin/sandbox-exec"
_SYSTEM = ("/usr", "/bin", "/sbin", "/System", "/Library", "/opt/homebrew", "/private/etc/ssl", "/dev")
_BASE_PROFILE = """(version 1)
(deny default)
(allow process-fork process-exec signal (target same-sandbox))
(allow sysctl-read mach-lookup file-read-metadata)
(allow network* (local ip "localhost:*") (remote ip "localhost:*"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero"))
"""


@dataclass(frozen=True, slots=True)
class Seatbelt:
    """Runs a job under a profile. Loopback is the machine's own: programs can reach the person's servers."""

    rung: str = "seatbelt"

    @classmethod
    def detect(cls) -> "Seatbelt":
        if sys.platform != "darwin" or not Path(_PROGRAM).exists():
            raise NoSandbox("sandbox-exec exists on macOS only", "use another rung")
        return cls()

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        return await execute_job(job, view.check_workspace(job.workspace), self.rung, _launch, listen)


def seatbelt_profile(readable: Iterable[str], writable: Iterable[str], protected: Iterable[str] = ()) -> str:
    """A profile that allows reading and writing these paths, except writing to protected ones, and nothing else."""
    read = "".join(f"(allow file-read* (subpath {_quote(path)}))\n" for path in readable)
    write = "".join(f"(allow file-read* file-write* (subpath {_quote(path)}))\n" for path in writable)
    deny = "".join(f"(deny file-write* (subpath {_quote(path)}))\n" for path in protected)
    return f"{_BASE_PROFILE}{read}{write}{deny}"


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@asynccontextmanager
async def _launch(
    job: Job, workspace: Path, monitor: RunMonitor, inherited: tuple[int, ...] = ()
) -> AsyncGenerator[RunningProgram]:
    with temporary_folder("run") as folder:
        home = str(folder.resolve())  # profiles need real paths, and on macOS this path contains a link
        readable = [*_SYSTEM, *map(str, view.readable_paths(job.readable))]
        protected = [str(mount.path) for mount in view.repository_mounts(workspace)]
        rules = seatbelt_profile(readable, [str(workspace), home], protected)
        program = shell_command(ulimit_script(job.limits), job.command)
        command = reaper_command([_PROGRAM, "-p", rules, *program])
        variables = environment(job.environment, home, home)
        with spawn(command, variables, workspace, inherited) as process:
            yield RunningProgram(process, process.pid, kill_signal=signal.SIGTERM)
