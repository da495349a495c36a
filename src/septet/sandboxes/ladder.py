"""Chooses the sandbox of this machine: the strongest rung that works here, tested with its real settings."""

import logging
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from anyio import Lock
from anyio.lowlevel import RunVar

from septet.common.temporary import temporary_folder
from septet.common.values import Value
from septet.domain.runs import Job, Limits
from septet.errors import BadUsage, NoSandbox, SeptetError
from septet.ports import Sandbox
from septet.sandboxes.rungs import namespaces
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.rungs.containers import Container
from septet.sandboxes.rungs.landlock import Landlock
from septet.sandboxes.rungs.seatbelt import Seatbelt
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.sandboxes.self_check import self_check

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
