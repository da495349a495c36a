"""A weaker rung: Landlock and a system-call filter, where namespaces may not be made. No sockets at all."""

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
from septet.sandboxes.cgroups import COMPANIONS, Cage, caged
from septet.sandboxes.environment import environment
from septet.sandboxes.etc_files import OPEN_SETTINGS
from septet.sandboxes.inside import landlock as landlocked
from septet.sandboxes.inside.reaper import command_of_reaper
from septet.sandboxes.limits import by_shell, limiting
from septet.sandboxes.process import Started, Watch, spawned
from septet.sandboxes.runs import carry_out

_LANDLOCKED = Path(landlocked.__file__)
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32")
_KERNEL = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "filesystems")
)
_OWN_PROCESS = tuple(
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
"""Not the whole folder: `net`, there and under `task`, is the machine's."""
_OLDEST = 6
"""From this version on a program can neither signal nor name those outside."""

_FAILED = 125


@dataclass(frozen=True, slots=True)
class Landlock:
    """Runs a job on the machine itself, where it may open only what it needs."""

    rung: str = "landlock"

    @classmethod
    def found(cls) -> "Landlock":
        if sys.platform != "linux" or not seccomp.supported():
            raise NoSandbox("there is no Landlock on this system", "use a container")
        if (known := landlocked.version()) < _OLDEST:
            raise NoSandbox(f"the kernel's Landlock is too old ({known})", "use a kernel from 6.12 on")
        return cls()

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        return await carry_out(job, view.checked_workspace(job.workspace), self.rung, _launch, listen)


@asynccontextmanager
async def _launch(
    job: Job, workspace: Path, watch: Watch, inherited: tuple[int, ...] = ()
) -> AsyncGenerator[Started]:
    with temporary_folder("run") as made, caged(job.limits) as cage:
        home = str(made)
        _check_that_it_holds(cage)
        command = by_shell(cage.entering(), _command(job, workspace, home))
        variables = environment(job.environment, home, home)
        with spawned(command, variables, workspace, inherited) as process:
            yield Started(process, process.pid, killer=signal.SIGTERM, cage=cage)
            if process.returncode == _FAILED and "septet-landlock: " in watch.stderr.text():
                raise SandboxFailed("Landlock could not be set up", "septet doctor")


def _check_that_it_holds(cage: Cage) -> None:
    if os.getuid() == 0 and not cage.counts_processes:
        raise NoSandbox("root's processes cannot be limited here", "run as a plain user")


def _command(job: Job, workspace: Path, home: str) -> list[str]:
    """Limits are set by the program's own shell, restrictions before it, and somebody outside both reaps."""
    calls = seccomp.filter_program(mounted=False).hex()
    readable = [*_SYSTEM, *OPEN_SETTINGS, *_KERNEL, *_OWN_PROCESS, *map(str, view.seen_beside(job.readable))]
    within = [
        sys.executable,
        "-I",
        "-S",
        str(_LANDLOCKED),
        calls,
        *readable,
        "--",
        str(workspace),
        home,
        "--",
    ]
    limits = "" if os.getuid() == 0 else limiting(job.limits, _tasks_of_this_user() + COMPANIONS)
    return command_of_reaper([*within, *by_shell(limits or limiting(job.limits), job.command)])


def _tasks_of_this_user() -> int:
    """Without a namespace of its own, the kernel counts the program's processes with all others of the user."""
    found = 0
    for status in Path("/proc").glob("[0-9]*/task"):
        try:
            found += sum(1 for _ in status.iterdir()) if status.stat().st_uid == os.getuid() else 0
        except OSError:
            continue
    return found
