"""A program in a sandbox that serves whoever started it, on its standard input and output, as long as it is wanted."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from os import geteuid
from pathlib import Path
from shlex import join
from typing import NamedTuple

import msgspec

from septet.domain.runs import Job
from septet.errors import NoSandbox
from septet.ports import Sandbox
from septet.sandboxes import seccomp, view
from septet.sandboxes.cgroups import make_control_group
from septet.sandboxes.environment import environment
from septet.sandboxes.limits import OWN_PROCESSES, shell_command, ulimit_script
from septet.sandboxes.network import open_network
from septet.sandboxes.rungs.bubblewrap import ISOLATION, Bubblewrap
from septet.sandboxes.users import SandboxUser

OPTIONS, RULES = 10, 11
"""The file descriptors by which the sandbox gets its options, which nobody else can read, and its system-call rules."""
_LAUNCHER = f"""
import json, os, sys
options, rules, script = json.loads(os.environ["SEPTET_SERVICE"])
for number, data in (({OPTIONS}, options.encode()), ({RULES}, bytes.fromhex(rules))):
    descriptor = os.memfd_create("septet")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, 0)
    os.dup2(descriptor, number)
    os.close(descriptor)
os.execve("/bin/sh", ["sh", "-c", script], {{"PATH": os.defpath}})
"""


class ServiceCommand(NamedTuple):
    """What starts the program: its variables are private, a command line is not."""

    command: list[str]
    variables: dict[str, str]


@asynccontextmanager
async def open_service(
    sandbox: Sandbox, job: Job, writable: Sequence[Path] = ()
) -> AsyncGenerator[ServiceCommand]:
    """The command that starts the job's program, for as long as the context is open.

    It sees its own folder, what the job says and the `writable` folders, and of the network what the job says. Raises
    NoSandbox where only single runs can be contained.
    """
    if not isinstance(sandbox, Bubblewrap):
        raise NoSandbox("the sandbox of this machine runs no servers", "install bubblewrap")
    async with open_network(job) as connected:
        workspace = view.check_workspace(connected.workspace)
        user = await sandbox.users.user_for([*view.source_paths(workspace, connected), *writable])
        with make_control_group(connected.limits) as group:
            if geteuid() == 0 and not (user.is_separate or group.counts_processes):
                raise NoSandbox("root's processes cannot be limited here", "run as a plain user")
            script = group.enter_script() + _script(sandbox, connected, user)
            options = "".join(f"{option}\0" for option in _options(connected, workspace, user, writable))
            rules = seccomp.filter_program(memory_counted=group.counts_memory).hex()
            given = msgspec.json.encode([options, rules, script]).decode()
            yield ServiceCommand([sys.executable, "-I", "-S", "-c", _LAUNCHER], {"SEPTET_SERVICE": given})


def _script(sandbox: Bubblewrap, job: Job, user: SandboxUser) -> str:
    """What the shell runs: limits for the user, then the sandbox with limits for the program."""
    outer = ulimit_script(job.limits, OWN_PROCESSES) if user.is_separate else ""
    program = shell_command("" if user.is_separate else ulimit_script(job.limits), job.command)
    builder = [str(user.path_for(Path(sandbox.program))), *sandbox.arguments]
    command = [*builder, "--args", str(OPTIONS), "--seccomp", str(RULES), "--", *program]
    return f"{outer}exec {join(user.command_as(command))}"


def _options(job: Job, workspace: Path, user: SandboxUser, writable: Sequence[Path]) -> list[str]:
    variables = [part for pair in environment(job.environment).items() for part in ("--setenv", *pair)]
    mounts = view.bubblewrap_arguments(workspace, job, user)
    closing = mounts.index("--remount-ro", mounts.index("--chdir") - 2)
    binds = [part for path in writable for part in ("--bind", str(user.path_for(path)), str(path))]
    return [*ISOLATION, "--clearenv", *variables, *mounts[:closing], *binds, *mounts[closing:]]
