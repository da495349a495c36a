"""Chooses the sandbox of this machine: the best rung that really works here, tried with its real settings."""

import tempfile

from septet.domain.runs import Job, Limits
from septet.errors import NoSandbox, SeptetError
from septet.ports import Sandbox
from septet.sandboxes.bubblewrap import Bubblewrap
from septet.sandboxes.unsafe import UnsafeLocal

_REMEDY = "install it (apt install bubblewrap) or pass --unsafe-local"


async def choose_sandbox(unsafe: bool = False) -> Sandbox:
    """The sandbox to use from now on. Raises NoSandbox with the cause and the remedy where there is none."""
    if unsafe:
        return UnsafeLocal()
    try:
        sandbox = Bubblewrap.found()
        await _try_out(sandbox)
    except SeptetError as error:
        raise NoSandbox(f"bubblewrap is not usable ({error.cause})", _REMEDY) from error
    return sandbox


async def _try_out(sandbox: Sandbox) -> None:
    """Not by version but by running something, with every flag that a real run has."""
    with tempfile.TemporaryDirectory(prefix="septet-probe-") as folder:
        result = await sandbox.run(Job(command=("true",), workspace=folder, limits=Limits(seconds=20.0)))
    if not result.succeeded:
        raise NoSandbox(f"a trial run ended with {result.exit_code}")
