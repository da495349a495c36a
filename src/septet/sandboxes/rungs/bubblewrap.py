"""The first rung: bubblewrap with all namespaces, a system-call filter, an allow-list of mounts, and limits."""

import asyncio
import atexit
import json
import os
import shutil
import subprocess
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from functools import cache
from io import FileIO
from pathlib import Path
from shlex import join

import anyio

from septet.domain.runs import Job, Limits, RunResult
from septet.errors import NoSandbox, SandboxFailed, SeptetError
from septet.ports import Listener
from septet.sandboxes import seccomp, view
from septet.sandboxes.cgroups import ControlGroup, make_control_group
from septet.sandboxes.environment import environment
from septet.sandboxes.limits import OWN_PROCESSES, shell_command, ulimit_script
from septet.sandboxes.process import RunMonitor, RunningProgram, spawn
from septet.sandboxes.runs import execute_job
from septet.sandboxes.users import SandboxUser, SandboxUsers


@dataclass(frozen=True, slots=True)
class Descriptors:
    """File descriptors of the shell: its script, the seccomp rules, the sandbox's options and its status reports."""

    script: int
    rules: int
    options: int
    reporter: int


@dataclass(slots=True)
class PrestartedShell:
    """Waits in its own control group, as its user, for the script that turns it into a sandbox."""

    user: SandboxUser
    process: subprocess.Popen[bytes]
    group: ControlGroup
    variables: Mapping[str, str]
    descriptors: Descriptors
    script_pipe: FileIO
    options: FileIO
    status: FileIO
    owner: tuple[int, int]
    stack: ExitStack

    def matches(self, user: SandboxUser) -> bool:
        """Whether it has this user, is alive and is a child of this thread: the kernel ends it with the thread."""
        return (self.user, self.owner) == (user, _current_thread()) and self.process.poll() is None

    async def start(self, limits: Limits, options: list[str], script: str, command: list[str]) -> None:
        """Make the shell run the script and exec the command, which reads its options from their descriptor."""
        self.group.limit(limits)
        self.options.write(b"".join(os.fsencode(option) + b"\0" for option in options))
        self.options.seek(0)
        rest = memoryview(os.fsencode(f"{script}exec {join(command)}\n"))
        os.set_blocking(self.script_pipe.fileno(), False)
        while rest:
            try:
                rest = rest[os.write(self.script_pipe.fileno(), rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self.script_pipe)
            except BrokenPipeError:
                break
        self.script_pipe.close()

    def close(self) -> None:
        """End the shell, or the sandbox that it became. Does nothing in a forked child."""
        if self.owner[0] == os.getpid():
            self.stack.close()


def prestart(user: SandboxUser, inherited: tuple[int, ...] = ()) -> PrestartedShell:
    """Start a shell; it may still be entering its group. It inherits the descriptors under their numbers."""
    variables = environment({})
    with ExitStack() as stack, ExitStack() as child_ends:
        group = stack.enter_context(make_control_group())
        script, script_pipe = map(_open, os.pipe())
        status, reporter = map(_open, os.pipe())
        rules, options = (_open(os.memfd_create("septet")) for _ in range(2))
        for end in (script_pipe, status, options):
            stack.callback(end.close)
        for end in (script, reporter, rules):
            child_ends.callback(end.close)
        rules.write(seccomp.filter_program(memory_counted=group.counts_memory))
        rules.seek(0)
        descriptors = Descriptors(script.fileno(), rules.fileno(), options.fileno(), reporter.fileno())
        shell = user.command_as(["/bin/sh", "-c", f". /dev/fd/{descriptors.script}"])
        all_inherited = (
            descriptors.script,
            descriptors.rules,
            descriptors.options,
            descriptors.reporter,
            *inherited,
        )
        command = shell_command(group.enter_script(), shell)
        user.give(script)
        process = stack.enter_context(spawn(command, variables, inherited=all_inherited))
        user.give(process.stdin, process.stdout, process.stderr)
        return PrestartedShell(
            *(user, process, group, variables, descriptors),
            *(script_pipe, options, status),
            _current_thread(),
            stack.pop_all(),
        )


def _open(descriptor: int) -> FileIO:
    return FileIO(descriptor, "r+")


def _current_thread() -> tuple[int, int]:
    return os.getpid(), threading.get_native_id()


@dataclass(slots=True)
class PrestartedShells:
    """Holds at most one waiting shell, for a run by the same user as the last one."""

    spare_shell: PrestartedShell | None = None

    def take(self, user: SandboxUser) -> PrestartedShell:
        shell, self.spare_shell = self.spare_shell, None
        if shell is not None and shell.matches(user):
            return shell
        if shell is not None:
            shell.close()
        return prestart(user)

    def prestart_later(self, user: SandboxUser) -> None:
        """Start the next shell after this run's result is delivered, so that it does not delay the run."""
        asyncio.get_running_loop().call_soon(self.prestart_next, user)

    def prestart_next(self, user: SandboxUser) -> None:
        with suppress(SeptetError, OSError):
            self.spare_shell = self.spare_shell or prestart(user)

    def close(self) -> None:
        shell, self.spare_shell = self.spare_shell, None
        if shell is not None:
            shell.close()


@cache
def prestarted_shells() -> PrestartedShells:
    """The shells of this process."""
    shells = PrestartedShells()
    atexit.register(shells.close)
    return shells


ISOLATION = (
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
                *ISOLATION,
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
