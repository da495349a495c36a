"""A shell that waits to become the next sandbox: to walk into a control group takes longer than all the rest."""

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
    """The shell's descriptors: where it finds its script, a filter and options, and where it reports."""

    script: int
    rules: int
    options: int
    reporter: int


@dataclass(slots=True)
class PrestartedShell:
    """Stands in a group of its own as somebody, with all that a sandbox needs, and becomes one when it is told how."""

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
        """The right one, alive, and this very thread's child: to die with the parent means with the thread."""
        return (self.user, self.owner) == (user, _current_thread()) and self.process.poll() is None

    async def start(self, limits: Limits, options: list[str], script: str, command: list[str]) -> None:
        """It runs the script and becomes the command, which finds the options behind their descriptor."""
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
        """Whoever still waits goes home; whoever became a sandbox ends with it."""
        if self.owner[0] == os.getpid():
            self.stack.close()


def prestart(user: SandboxUser, inherited: tuple[int, ...] = ()) -> PrestartedShell:
    """A new shell, on its way into its group. It also gets the descriptors to inherit, under their numbers."""
    variables = environment({})
    with ExitStack() as stack, ExitStack() as theirs:
        group = stack.enter_context(make_control_group())
        script, door = map(_open, os.pipe())
        status, reporter = map(_open, os.pipe())
        rules, options = (_open(os.memfd_create("septet")) for _ in range(2))
        for end in (door, status, options):
            stack.callback(end.close)
        for end in (script, reporter, rules):
            theirs.callback(end.close)
        rules.write(seccomp.filter_program(memory_counted=group.counts_memory))
        rules.seek(0)
        numbers = Descriptors(script.fileno(), rules.fileno(), options.fileno(), reporter.fileno())
        waiting = user.command_as(["/bin/sh", "-c", f". /dev/fd/{numbers.script}"])
        given = (numbers.script, numbers.rules, numbers.options, numbers.reporter, *inherited)
        command = shell_command(group.enter_script(), waiting)
        user.give(script)
        process = stack.enter_context(spawn(command, variables, inherited=given))
        user.give(process.stdin, process.stdout, process.stderr)
        return PrestartedShell(
            *(user, process, group, variables, numbers),
            *(door, options, status),
            _current_thread(),
            stack.pop_all(),
        )


def _open(descriptor: int) -> FileIO:
    return FileIO(descriptor, "r+")


def _current_thread() -> tuple[int, int]:
    return os.getpid(), threading.get_native_id()


@dataclass(slots=True)
class PrestartedShells:
    """At most one shell waits, for a run like the last one."""

    spare_shell: PrestartedShell | None = None

    def take(self, user: SandboxUser) -> PrestartedShell:
        shell, self.spare_shell = self.spare_shell, None
        if shell is not None and shell.matches(user):
            return shell
        if shell is not None:
            shell.close()
        return prestart(user)

    def prestart_later(self, user: SandboxUser) -> None:
        """As soon as whoever waits for this run's result has it: the next shell takes no time of this run."""
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
    """Those of this process."""
    kept = PrestartedShells()
    atexit.register(kept.close)
    return kept
