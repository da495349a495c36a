"""The first rung: bubblewrap with every namespace, a system-call filter, an allow-list view and limits."""

import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

import anyio

from septet.domain.runs import Job, RunResult
from septet.errors import NoSandbox, SandboxFailed
from septet.ports import Listener
from septet.sandboxes import seccomp, view
from septet.sandboxes.cgroups import ControlGroup
from septet.sandboxes.environment import environment
from septet.sandboxes.limits import OWN_PROCESSES, shell_command, ulimit_script
from septet.sandboxes.prestarted import (
    Descriptors,
    PrestartedShell,
    PrestartedShells,
    prestart,
    prestarted_shells,
)
from septet.sandboxes.process import RunMonitor, RunningProgram
from septet.sandboxes.runs import execute_job
from septet.sandboxes.users import SandboxUser, SandboxUsers

_ISOLATION = (
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--hostname", "septet", "--uid", "1000", "--gid", "1000"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
_NO_PROGRAM = 127
_NOT_RUN = 1
"""What bubblewrap ends with when it could not even start the program."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A sandbox made anew for each run, by bubblewrap, or by a program that takes its options after `arguments`."""

    program: str
    rung: str = "bubblewrap"
    arguments: tuple[str, ...] = ()
    users: SandboxUsers = field(default_factory=SandboxUsers, repr=False)
    shells: PrestartedShells = field(default_factory=prestarted_shells, repr=False)

    @classmethod
    def detect(cls) -> "Bubblewrap":
        program = shutil.which("bwrap", path=os.defpath + ":/usr/local/bin") or shutil.which("bwrap")
        if program is None:
            raise NoSandbox("bubblewrap is not installed", "apt install bubblewrap")
        if not seccomp.is_supported():
            raise NoSandbox("there is no system-call filter for this processor", "use a container")
        return cls(program)

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        workspace = view.check_workspace(job.workspace)
        return await execute_job(job, workspace, self.rung, self.launch, listen)

    @asynccontextmanager
    async def launch(
        self, job: Job, workspace: Path, monitor: RunMonitor, inherited: tuple[int, ...] = ()
    ) -> AsyncGenerator[RunningProgram]:
        """Starts the program of a job, which also gets the descriptors to inherit, under their numbers."""
        user = await self.users.user_for(view.source_paths(workspace, job))
        shell = prestart(user, inherited) if inherited else self.shells.take(user)
        with closing(shell):
            _check_process_limit(shell.group, user)
            options = [
                *_ISOLATION,
                *_variables(job, shell),
                *view.bubblewrap_arguments(workspace, job, user),
            ]
            limits = ulimit_script(job.limits, OWN_PROCESSES) if user.is_separate else ""
            await shell.start(job.limits, options, limits, self._command(job, user, shell.descriptors))
            report = await _read_until(shell.status, b"\n")
            yield RunningProgram(shell.process, _child(report, shell.process), group=shell.group)
            if shell.process.returncode == _NOT_RUN and monitor.stopped_by is None:
                _explain_failure(report + await _read_until(shell.status), monitor)
        if not inherited:
            self.shells.prestart_later(user)

    def _command(self, job: Job, user: SandboxUser, numbers: Descriptors) -> list[str]:
        """Options come by descriptor: the program can read bubblewrap's command line. So is the script's closed."""
        behind = ["--args", str(numbers.script), "--args", str(numbers.options)]
        reports = ["--seccomp", str(numbers.rules), "--json-status-fd", str(numbers.reporter)]
        program = shell_command("" if user.is_separate else ulimit_script(job.limits), job.command)
        builder = [str(user.path_for(Path(self.program))), *self.arguments]
        return [*builder, *behind, *reports, "--", *program]


def _variables(job: Job, shell: PrestartedShell) -> list[str]:
    wanted = environment(job.environment).items() - shell.variables.items()
    return [word for name, value in wanted for word in ("--setenv", name, value)]


def _check_process_limit(group: ControlGroup, user: SandboxUser) -> None:
    """The kernel does not hold root to a number of processes, whatever root is called inside."""
    if os.getuid() == 0 and not user.is_separate and not group.counts_processes:
        raise NoSandbox("root's processes cannot be limited here", "run as a plain user")


def _child(report: bytes, process: subprocess.Popen[bytes]) -> int:
    """The number, outside, of the first process inside: its end is everybody's end."""
    if report:
        return int(json.loads(report.partition(b"\n")[0])["child-pid"])
    _, errors = process.communicate()
    said = " ".join(errors.decode("utf-8", "replace").split())
    raise SandboxFailed(f"the sandbox did not start ({said})", "septet doctor")


def _explain_failure(report: bytes, monitor: RunMonitor) -> None:
    """Without an exit code in the report the program never ran: because there is none, or for our fault."""
    if b'"exit-code"' in report:
        return
    said = monitor.stderr.text().strip().rpartition("\n")[2]
    if ": execvp " in said:
        monitor.exit_code = _NO_PROGRAM
    else:
        raise SandboxFailed(f"the sandbox could not start the program ({said})", "septet doctor")


async def _read_until(source: FileIO, mark: bytes | None = None) -> bytes:
    """What the source gives, to its end or to the mark."""
    content = b""
    while mark is None or mark not in content:
        await anyio.wait_readable(source)
        piece = source.read(4096)
        if not piece:
            break
        content += piece
    return content
