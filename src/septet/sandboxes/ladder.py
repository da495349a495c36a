"""Chooses the sandbox of this machine: the strongest rung whose self-check passes with its real settings."""

import logging
import os
import platform
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

import msgspec
from anyio import Lock
from anyio.lowlevel import RunVar

from septet.common.temporary import temporary_folder
from septet.common.values import Value
from septet.domain.runs import Job, Limits
from septet.errors import BadUsage, NoSandbox, SeptetError
from septet.ports import Sandbox
from septet.sandboxes.environment import environment
from septet.sandboxes.rungs import namespaces
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.rungs.containers import Container
from septet.sandboxes.rungs.landlock import Landlock
from septet.sandboxes.rungs.seatbelt import Seatbelt
from septet.sandboxes.rungs.unsafe import UnsafeLocal

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


_REMEDY = "install it (apt install bubblewrap) or pass --unsafe-local"

RUNGS: dict[str, Callable[[], Sandbox]] = {
    "bubblewrap": Bubblewrap.detect,
    "namespaces": namespaces.detect,
    "seatbelt": Seatbelt.detect,
    "landlock": Landlock.detect,
}
"""From the strongest; the first one that works is used, unless the person names another."""

BY_NAME_ONLY: dict[str, Callable[[], Sandbox]] = {"podman": Container.podman, "docker": Container.docker}
"""Used only by name: they need an engine and take a hundred times as long to start."""

_WARNINGS = {
    "landlock": "namespaces are not available here: programs run under Landlock, which hides less (docs/sandbox.md)"
}
"""Logged when such a rung is chosen automatically."""

VARIABLE = "SEPTET_SANDBOX"
"""This variable names a rung; no other is used then."""

_PROVEN: dict[Path, str] = {}
"""Proofs of the rungs that this process has checked, by the path of the proof's file."""
_LOCK: RunVar[Lock] = RunVar("the lock of self-checks")
_log = logging.getLogger(__name__)


class Rung(Value):
    """One rung on this machine; `error` says why it cannot be used."""

    name: str
    error: str = ""

    @property
    def usable(self) -> bool:
        return not self.error


async def choose_sandbox(unsafe: bool = False, rung: str = "", proofs: Path | None = None) -> Sandbox:
    """The sandbox to use. Raises NoSandbox with the cause and the remedy if there is none.

    If the folder `proofs` has no proof for this machine, the sandbox must pass the self-check first.
    """
    if unsafe:
        return UnsafeLocal()
    if rung := rung or os.environ.get(VARIABLE, ""):
        return await _prove(await _open(rung), rung, proofs)
    causes: list[str] = []
    for name in RUNGS:
        try:
            sandbox = await _prove(await _open(name), name, proofs)
        except NoSandbox as error:
            causes.append(error.cause)
        else:
            if name in _WARNINGS:
                _log.warning("septet: %s", _WARNINGS[name])
            return sandbox
    raise NoSandbox("; ".join(causes), _REMEDY)


async def _open(rung: str) -> Sandbox:
    rungs = RUNGS | BY_NAME_ONLY
    if rung not in rungs:
        raise BadUsage(f"there is no rung {rung!r}", f"name one of {', '.join(rungs)}")
    try:
        sandbox = rungs[rung]()
    except NoSandbox as error:
        raise _not_usable(rung, error) from error
    return await check_runs(sandbox, rung)


async def _prove(sandbox: Sandbox, rung: str, proofs: Path | None) -> Sandbox:
    """Self-check a rung once per kernel, even if many chats start at once. Raises NoSandbox if it fails."""
    proof = f"{platform.platform()}\n"
    async with _self_check_lock():
        if proofs is None or proof in (_PROVEN.get(proofs / rung), _read(proofs / rung)):
            return sandbox
        check = await self_check(sandbox)
        if not check.holds:
            failed = ", ".join(check.let_through) or "the check did not run"
            raise NoSandbox(f"{rung} is not secure here ({failed})", _REMEDY)
        _PROVEN[proofs / rung] = proof
        if proofs.parent.exists():  # a command that fails must not create the home folder
            store_proofs(proofs)
        return sandbox


def _self_check_lock() -> Lock:
    """The lock of this event loop."""
    lock = _LOCK.get(None)
    if lock is None:
        lock = Lock()
        _LOCK.set(lock)
    return lock


def has_proofs() -> bool:
    """Whether this process has tested a sandbox."""
    return bool(_PROVEN)


def store_proofs(folder: Path) -> None:
    """Write this process's proofs for later ones; if that fails, the next start checks again."""
    with suppress(OSError):
        for path, proof in _PROVEN.items():
            if path.parent == folder:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_text(proof)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


async def list_rungs() -> tuple[Rung, ...]:
    """Every rung that can be chosen automatically and whether it works here, each tested by a run."""
    return tuple([await _inspect(name) for name in RUNGS])


async def _inspect(name: str) -> Rung:
    try:
        await _open(name)
    except NoSandbox as error:
        return Rung(name=name, error=error.cause)
    return Rung(name=name)


async def check_runs(sandbox: Sandbox, rung: str = "bubblewrap") -> Sandbox:
    """Test a sandbox by running a program with all real settings, not by its version. Raises NoSandbox."""
    with temporary_folder("probe") as folder:
        job = Job(command=("echo", "works"), workspace=str(folder), limits=Limits(seconds=20.0))
        try:
            result = await sandbox.run(job)
        except SeptetError as error:
            raise _not_usable(rung, error) from error
    if not result.succeeded or result.stdout != "works\n":
        raise _not_usable(rung, NoSandbox(f"a trial run ended with {result.exit_code}"))
    return sandbox


def _not_usable(rung: str, error: SeptetError) -> NoSandbox:
    remedy = _REMEDY if rung == "bubblewrap" else error.remedy
    return NoSandbox(f"{rung} is not usable ({error.cause})", remedy)
