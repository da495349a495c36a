"""Tests a sandbox on this machine: a program inside tries things that must all fail."""

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
"""Attempts that a weaker rung cannot prevent: a Landlock rule cannot exclude a folder inside a writable one.
`septet doctor` says so."""

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
    """The output of the program inside."""

    secret: str
    interfaces: str
    variables: dict[str, str]


class AttemptResult(Value):
    """One attempt, whether the sandbox prevented it, and whether it must."""

    attempt: Attempt
    is_contained: bool
    is_required: bool = True


class SelfCheck(Value):
    """The results for one rung. `ran` is False if the program did not finish."""

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
    """Create the canaries, run the program, and check the canaries rather than trust its output if possible."""
    token = secrets.token_hex()
    with temporary_folder("check") as folder, _listener() as listener:
        secret, outside, workspace = folder / "secret", folder / "outside", folder / "workspace"
        secret.write_text(token)
        hook = _make_hook_folder(workspace)
        arguments = (str(secret), str(listener.getsockname()[1]), str(outside), str(hook))
        job = Job(command=("python3", "-c", _PROGRAM, *arguments), workspace=str(workspace), limits=_LIMITS)
        result = await sandbox.run(job)
        output = _parse_output(result.stdout) if result.succeeded else None
        succeeded: dict[Attempt, bool] = {
            "read a secret": output is not None and output.secret == token,
            "reach a port": _was_reached(listener),
            "write outside": outside.exists(),
            "see the environment": output is not None and bool(_leaked_variables(output.variables)),
            "see the network interfaces": output is not None and bool(_visible_interfaces(output.interfaces)),
            "write a git hook": hook.exists(),
        }
    accepted = ACCEPTED.get(result.rung, frozenset())
    results = [
        AttemptResult(
            attempt=attempt, is_contained=not succeeded[attempt], is_required=attempt not in accepted
        )
        for attempt in ATTEMPTS
    ]
    return SelfCheck(rung=result.rung, ran=output is not None, results=tuple(results))


def _parse_output(stdout: str) -> ProbeOutput | None:
    try:
        return msgspec.json.decode(stdout, type=ProbeOutput)
    except msgspec.MsgspecError:
        return None


def _leaked_variables(inside: Mapping[str, str]) -> list[str]:
    """Variables of this process that leaked into the program. The check sets none itself, because other chats may start
    programs at the same time."""
    expected = environment({}).keys() | _SHELL_VARIABLES
    return [name for name, value in os.environ.items() if name not in expected and inside.get(name) == value]


def _visible_interfaces(table: str) -> list[str]:
    """The machine's own interfaces in the contents of /proc/net/dev."""
    names = {name for _, name in socket.if_nameindex()} - {"lo"}
    return [line for line in table.splitlines() if line.partition(":")[0].strip() in names]


def _make_hook_folder(workspace: Path) -> Path:
    """Create a repository's hook folder; returns the path of a hook."""
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
