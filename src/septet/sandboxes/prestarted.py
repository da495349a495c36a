"""A shell, started in advance, that becomes the next sandbox: entering a control group is the slowest step."""

import asyncio
import atexit
import os
import subprocess
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from io import FileIO
from shlex import join

import anyio

from septet.domain.runs import Limits
from septet.errors import SeptetError
from septet.sandboxes import seccomp
from septet.sandboxes.cgroups import ControlGroup, make_control_group
from septet.sandboxes.environment import environment
from septet.sandboxes.limits import shell_command
from septet.sandboxes.process import spawn
from septet.sandboxes.users import SandboxUser


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
