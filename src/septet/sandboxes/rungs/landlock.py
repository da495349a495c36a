"""A weaker rung, for machines without namespaces: Landlock and a system-call filter. No sockets at all."""

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from septet.common.temporary import temporary_folder
from septet.domain.runs import Job, RunResult
from septet.errors import NoSandbox, SandboxFailed
from septet.ports import Listener
from septet.sandboxes import seccomp, view
from septet.sandboxes.cgroups import ControlGroup, make_control_group
from septet.sandboxes.environment import environment
from septet.sandboxes.inside import landlock as landlocked
from septet.sandboxes.inside.reaper import reaper_command
from septet.sandboxes.limits import OWN_PROCESSES, shell_command, ulimit_script
from septet.sandboxes.process import RunMonitor, RunningProgram, spawn
from septet.sandboxes.runs import execute_job
from septet.sandboxes.users import ETC_PATHS

_PROGRAM = Path(landlocked.__file__)
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32")
_KERNEL_FILES = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "filesystems")
)
_PROCESS_FILES = tuple(
    f"/proc/self/{name}"
    for name in (
        *(
            "auxv",
            "cgroup",
            "cmdline",
            "comm",
            "environ",
            "exe",
            "fd",
            "fdinfo",
            "io",
            "limits",
            "maps",
            "mem",
        ),
        *("oom_score_adj", "smaps", "stat", "statm", "status"),
    )
)
"""Not the whole folder: `net`, there and below `task`, shows the machine's network."""
_MIN_VERSION = 6
"""From this version on a program can neither signal processes outside nor connect to their abstract sockets."""

_SETUP_FAILED = 125


@dataclass(frozen=True, slots=True)
class Landlock:
    """Runs a job on the machine itself, where it can open only the paths that it needs."""

    rung: str = "landlock"

    @classmethod
    def detect(cls) -> "Landlock":
        if sys.platform != "linux" or not seccomp.is_supported():
            raise NoSandbox("there is no Landlock on this system", "use a container")
        if (version := landlocked.version()) < _MIN_VERSION:
            raise NoSandbox(f"the kernel's Landlock is too old ({version})", "use a kernel from 6.12 on")
        return cls()

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        return await execute_job(job, view.check_workspace(job.workspace), self.rung, _launch, listen)


@asynccontextmanager
async def _launch(
    job: Job, workspace: Path, monitor: RunMonitor, inherited: tuple[int, ...] = ()
) -> AsyncGenerator[RunningProgram]:
    with temporary_folder("run") as folder, make_control_group(job.limits) as group:
        home = str(folder)
        _check_process_limit(group)
        command = shell_command(group.enter_script(), _command(job, workspace, home))
        variables = environment(job.environment, home, home)
        with spawn(command, variables, workspace, inherited) as process:
            yield RunningProgram(process, process.pid, kill_signal=signal.SIGTERM, group=group)
            if process.returncode == _SETUP_FAILED and "septet-landlock: " in monitor.stderr.text():
                raise SandboxFailed("Landlock could not be set up", "septet doctor")


def _check_process_limit(group: ControlGroup) -> None:
    if os.getuid() == 0 and not group.counts_processes:
        raise NoSandbox("root's processes cannot be limited here", "run as a plain user")


def _command(job: Job, workspace: Path, home: str) -> list[str]:
    """From the outside in: the reaper, the restrictions, a shell that sets limits, the program."""
    call_filter = seccomp.filter_program(has_mounts=False).hex()
    readable = [
        *_SYSTEM,
        *ETC_PATHS,
        *_KERNEL_FILES,
        *_PROCESS_FILES,
        *map(str, view.readable_paths(job.readable)),
    ]
    restricted = [
        sys.executable,
        "-I",
        "-S",
        str(_PROGRAM),
        call_filter,
        *readable,
        "--",
        str(workspace),
        home,
        "--",
    ]
    limits = "" if os.getuid() == 0 else ulimit_script(job.limits, _tasks_of_this_user() + OWN_PROCESSES)
    return reaper_command([*restricted, *shell_command(limits or ulimit_script(job.limits), job.command)])


def _tasks_of_this_user() -> int:
    """The number of the user's tasks: without a user namespace the kernel counts the program's together with them."""
    count = 0
    for tasks in Path("/proc").glob("[0-9]*/task"):
        try:
            count += sum(1 for _ in tasks.iterdir()) if tasks.stat().st_uid == os.getuid() else 0
        except OSError:
            continue
    return count
