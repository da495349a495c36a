"""Proves a sandbox on this machine: a program inside tries what must all fail."""

import os
import secrets
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from septet.domain.runs import Job, Limits
from septet.domain.values import Value
from septet.ports import Sandbox
from septet.tools.passing import passing_folder

Attempt = Literal["read a secret", "reach a port", "write outside", "see the environment"]

_PROGRAM = """
import os, socket, sys
secret, port, outside = sys.argv[1:]
def attempt(action):
    try: print(action())
    except OSError as error: print(error)
attempt(lambda: open(secret).read())
attempt(lambda: socket.create_connection(("127.0.0.1", int(port)), 2))
attempt(lambda: open(outside, "w").write("x"))
attempt(lambda: dict(os.environ))
print("end")
"""
_VARIABLE = "SEPTET_SELF_CHECK"


class Finding(Value):
    """One thing that was tried, and whether the sandbox held it."""

    attempt: Attempt
    held: bool


class SelfCheck(Value):
    """What was found about one rung. `ran` tells whether the program came to its end at all."""

    rung: str
    ran: bool
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        return self.ran and all(finding.held for finding in self.findings)


async def self_check(sandbox: Sandbox) -> SelfCheck:
    """Makes the canaries, runs the program, and looks at what became of them, not at what it says."""
    token = secrets.token_hex()
    with passing_folder("check") as folder, _listener() as listener:
        secret, outside, workspace = folder / "secret", folder / "outside", folder / "workspace"
        secret.write_text(token)
        workspace.mkdir()
        command = ("python3", "-c", _PROGRAM, str(secret), str(listener.getsockname()[1]), str(outside))
        with _in_our_environment(f"{token}-variable"):
            result = await sandbox.run(
                Job(command=command, workspace=str(workspace), limits=Limits(seconds=20.0))
            )
        got_through: dict[Attempt, bool] = {
            "read a secret": f"{token}\n" in result.stdout,
            "reach a port": _reached(listener),
            "write outside": outside.exists(),
            "see the environment": f"{token}-variable" in result.stdout,
        }
    findings = tuple(Finding(attempt=attempt, held=not done) for attempt, done in got_through.items())
    ran = result.succeeded and result.stdout.endswith("\nend\n")
    return SelfCheck(rung=result.rung, ran=ran, findings=findings)


@contextmanager
def _in_our_environment(value: str) -> Generator[None]:
    os.environ[_VARIABLE] = value
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def _listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    return listener


def _reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
