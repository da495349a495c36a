"""Proves a sandbox on this machine: a program inside tries what must all fail."""

import os
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from septet.common.temporary import temporary_folder
from septet.common.values import Value
from septet.domain.runs import Job, Limits
from septet.ports import Sandbox
from septet.sandboxes.environment import environment

Attempt = Literal[
    "read a secret",
    "reach a port",
    "write outside",
    "see the environment",
    "see the network interfaces",
    "write a git hook",
]
ATTEMPTS: tuple[Attempt, ...] = get_args(Attempt)

ACCEPTED: Mapping[str, frozenset[Attempt]] = {"landlock": frozenset({"write a git hook"})}
"""What a weaker rung cannot hold and is used nevertheless: a rule of Landlock has no exception for a folder inside
a writable one. `septet doctor` says so."""

_PROGRAM = """
import json, os, socket, sys
secret, port, outside, hook = sys.argv[1:]
def attempt(action):
    try: return action()
    except OSError as error: return str(error)
print(json.dumps({
    "secret": attempt(lambda: open(secret).read()),
    "port": str(attempt(lambda: socket.create_connection(("127.0.0.1", int(port)), 2))),
    "outside": str(attempt(lambda: open(outside, "w").write("x"))),
    "variables": dict(os.environ),
    "interfaces": attempt(lambda: open("/proc/net/dev").read()),
    "hook": str(attempt(lambda: open(hook, "w").write("x"))),
}))
"""
_LIMITS = Limits(seconds=20.0)
_SHELL_VARIABLES = frozenset({"PWD", "OLDPWD", "SHLVL", "_"})
"""Variables that a shell inside sets itself, perhaps to the same values."""


class ProbeOutput(Value):
    """What the program got to see."""

    secret: str
    interfaces: str
    variables: dict[str, str]


class AttemptResult(Value):
    """One thing that was tried, whether the sandbox held it, and whether it must."""

    attempt: Attempt
    is_contained: bool
    is_required: bool = True


class SelfCheck(Value):
    """What was found about one rung. `ran` tells whether the program came to its end at all."""

    rung: str
    ran: bool
    results: tuple[AttemptResult, ...]

    @property
    def holds(self) -> bool:
        return self.ran and all(result.is_contained or not result.is_required for result in self.results)

    @property
    def let_through(self) -> tuple[Attempt, ...]:
        return tuple(result.attempt for result in self.results if not result.is_contained)


async def self_check(sandbox: Sandbox) -> SelfCheck:
    """Makes the canaries, runs the program, and looks at what became of them, not at what it says of itself."""
    token = secrets.token_hex()
    with temporary_folder("check") as folder, _listener() as listener:
        secret, outside, workspace = folder / "secret", folder / "outside", folder / "workspace"
        secret.write_text(token)
        hook = _make_hook_folder(workspace)
        places = (str(secret), str(listener.getsockname()[1]), str(outside), str(hook))
        job = Job(command=("python3", "-c", _PROGRAM, *places), workspace=str(workspace), limits=_LIMITS)
        result = await sandbox.run(job)
        said = _parse_output(result.stdout) if result.succeeded else None
        got_through: dict[Attempt, bool] = {
            "read a secret": said is not None and said.secret == token,
            "reach a port": _was_reached(listener),
            "write outside": outside.exists(),
            "see the environment": said is not None and bool(_leaked_variables(said.variables)),
            "see the network interfaces": said is not None and bool(_visible_interfaces(said.interfaces)),
            "write a git hook": hook.exists(),
        }
    accepted = ACCEPTED.get(result.rung, frozenset())
    results = [
        AttemptResult(attempt=one, is_contained=not got_through[one], is_required=one not in accepted)
        for one in ATTEMPTS
    ]
    return SelfCheck(rung=result.rung, ran=said is not None, results=tuple(results))


def _parse_output(stdout: str) -> ProbeOutput | None:
    try:
        return msgspec.json.decode(stdout, type=ProbeOutput)
    except msgspec.MsgspecError:
        return None


def _leaked_variables(inside: Mapping[str, str]) -> list[str]:
    """Variables of this process that a program got although they are not meant for it. None of ours is changed for
    the check: other chats may start programs at the same time."""
    meant = environment({}).keys() | _SHELL_VARIABLES
    return [name for name, value in os.environ.items() if name not in meant and inside.get(name) == value]


def _visible_interfaces(table: str) -> list[str]:
    """The machine's own interfaces in a table of the kernel's."""
    names = {name for _, name in socket.if_nameindex()} - {"lo"}
    return [line for line in table.splitlines() if line.partition(":")[0].strip() in names]


def _make_hook_folder(workspace: Path) -> Path:
    """Where a repository in the workspace would have a hook."""
    hooks = workspace / ".git" / "hooks"
    hooks.mkdir(parents=True)
    return hooks / "pre-commit"


def _listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    return listener


def _was_reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
