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
from septet.sandboxes.cgroups import Cage, caged
from septet.sandboxes.environment import environment
from septet.sandboxes.limits import by_shell
from septet.sandboxes.process import spawned
from septet.sandboxes.users import Identity


@dataclass(frozen=True, slots=True)
class Numbers:
    """The porter's descriptors: where it finds its script, a filter and options, and where it reports."""

    script: int
    rules: int
    options: int
    reporter: int


@dataclass(slots=True)
class Porter:
    """Stands in a cage of its own as somebody, with all that a sandbox needs, and becomes one when it is told how."""

    identity: Identity
    process: subprocess.Popen[bytes]
    cage: Cage
    variables: Mapping[str, str]
    numbers: Numbers
    door: FileIO
    options: FileIO
    status: FileIO
    owner: tuple[int, int]
    stack: ExitStack

    def fits(self, identity: Identity) -> bool:
        """The right one, alive, and this very thread's child: to die with the parent means with the thread."""
        return (self.identity, self.owner) == (identity, _here()) and self.process.poll() is None

    async def tell(self, limits: Limits, options: list[str], script: str, command: list[str]) -> None:
        """It runs the script and becomes the command, which finds the options behind their descriptor."""
        self.cage.limit(limits)
        self.options.write(b"".join(os.fsencode(option) + b"\0" for option in options))
        self.options.seek(0)
        rest = memoryview(os.fsencode(f"{script}exec {join(command)}\n"))
        os.set_blocking(self.door.fileno(), False)
        while rest:
            try:
                rest = rest[os.write(self.door.fileno(), rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self.door)
            except BrokenPipeError:
                break
        self.door.close()

    def close(self) -> None:
        """Whoever still waits goes home; whoever became a sandbox ends with it."""
        if self.owner[0] == os.getpid():
            self.stack.close()


def called(identity: Identity, inherited: tuple[int, ...] = ()) -> Porter:
    """A new porter, on its way into its cage. It also gets the descriptors to inherit, under their numbers."""
    variables = environment({})
    with ExitStack() as stack, ExitStack() as theirs:
        cage = stack.enter_context(caged())
        script, door = map(_opened, os.pipe())
        status, reporter = map(_opened, os.pipe())
        rules, options = (_opened(os.memfd_create("septet")) for _ in range(2))
        for end in (door, status, options):
            stack.callback(end.close)
        for end in (script, reporter, rules):
            theirs.callback(end.close)
        rules.write(seccomp.filter_program(counted=cage.counts_memory))
        rules.seek(0)
        numbers = Numbers(script.fileno(), rules.fileno(), options.fileno(), reporter.fileno())
        waiting = identity.entering(["/bin/sh", "-c", f". /dev/fd/{numbers.script}"])
        given = (numbers.script, numbers.rules, numbers.options, numbers.reporter, *inherited)
        command = by_shell(cage.entering(), waiting)
        identity.takes(script)
        process = stack.enter_context(spawned(command, variables, inherited=given))
        identity.takes(process.stdin, process.stdout, process.stderr)
        return Porter(
            *(identity, process, cage, variables, numbers), *(door, options, status), _here(), stack.pop_all()
        )


def _opened(descriptor: int) -> FileIO:
    return FileIO(descriptor, "r+")


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_native_id()


@dataclass(slots=True)
class Porters:
    """At most one porter waits, for a run like the last one."""

    waiting: Porter | None = None

    def take(self, identity: Identity) -> Porter:
        porter, self.waiting = self.waiting, None
        if porter is not None and porter.fits(identity):
            return porter
        if porter is not None:
            porter.close()
        return called(identity)

    def call_later(self, identity: Identity) -> None:
        """As soon as whoever waits for this run's result has it: the next porter takes no time of this run."""
        asyncio.get_running_loop().call_soon(self.call_the_next, identity)

    def call_the_next(self, identity: Identity) -> None:
        with suppress(SeptetError, OSError):
            self.waiting = self.waiting or called(identity)

    def close(self) -> None:
        porter, self.waiting = self.waiting, None
        if porter is not None:
            porter.close()


@cache
def porters() -> Porters:
    """Those of this process."""
    kept = Porters()
    atexit.register(kept.close)
    return kept
