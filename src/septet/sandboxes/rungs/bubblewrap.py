"""The first rung: bubblewrap with all namespaces, a system-call filter, an allow-list of mounts, and limits."""

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
_PROGRAM_NOT_FOUND = 127
_NOT_STARTED = 1
"""The exit code of bubblewrap if it could not start the program."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A new sandbox for each run, by bubblewrap or by a program that takes the same options after `arguments`."""

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
        """Start the program of a job, which inherits the descriptors under their numbers."""
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
            if shell.process.returncode == _NOT_STARTED and monitor.stopped_by is None:
                _explain_failure(report + await _read_until(shell.status), monitor)
        if not inherited:
            self.shells.prestart_later(user)

    def _command(self, job: Job, user: SandboxUser, descriptors: Descriptors) -> list[str]:
        """Options are passed by descriptor, because the program can read bubblewrap's command line.

        The exhausted script is passed as `--args` too, so that bubblewrap closes its descriptor.
        """
        option_arguments = ["--args", str(descriptors.script), "--args", str(descriptors.options)]
        other_arguments = ["--seccomp", str(descriptors.rules), "--json-status-fd", str(descriptors.reporter)]
        program = shell_command("" if user.is_separate else ulimit_script(job.limits), job.command)
        builder = [str(user.path_for(Path(self.program))), *self.arguments]
        return [*builder, *option_arguments, *other_arguments, "--", *program]


def _variables(job: Job, shell: PrestartedShell) -> list[str]:
    changed = environment(job.environment).items() - shell.variables.items()
    return [argument for name, value in changed for argument in ("--setenv", name, value)]


def _check_process_limit(group: ControlGroup, user: SandboxUser) -> None:
    """Raise NoSandbox for root without a control group: the kernel does not limit the number of root's processes."""
    if os.getuid() == 0 and not user.is_separate and not group.counts_processes:
        raise NoSandbox("root's processes cannot be limited here", "run as a plain user")


def _child(report: bytes, process: subprocess.Popen[bytes]) -> int:
    """The pid, outside, of the first process inside; its end is the end of all others."""
    if report:
        return int(json.loads(report.partition(b"\n")[0])["child-pid"])
    _, errors = process.communicate()
    output = " ".join(errors.decode("utf-8", "replace").split())
    raise SandboxFailed(f"the sandbox did not start ({output})", "septet doctor")


def _explain_failure(report: bytes, monitor: RunMonitor) -> None:
    """Without an exit code in the report the program never ran: either it does not exist, or the sandbox failed."""
    if b'"exit-code"' in report:
        return
    last_line = monitor.stderr.text().strip().rpartition("\n")[2]
    if ": execvp " in last_line:
        monitor.exit_code = _PROGRAM_NOT_FOUND
    else:
        raise SandboxFailed(f"the sandbox could not start the program ({last_line})", "septet doctor")


async def _read_until(source: FileIO, mark: bytes | None = None) -> bytes:
    """Read to the end of the source, or until the mark has come."""
    content = b""
    while mark is None or mark not in content:
        await anyio.wait_readable(source)
        piece = source.read(4096)
        if not piece:
            break
        content += piece
    return content
