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
        found = Bubblewrap.found()
    except NoSandbox as error:
        raise _refusal(error) from error
    return await tried_out(found)


async def tried_out(sandbox: Sandbox) -> Sandbox:
    """Not by version but by running something, with every flag that a real run has."""
    with tempfile.TemporaryDirectory(prefix="septet-probe-") as folder:
        job = Job(command=("echo", "works"), workspace=folder, limits=Limits(seconds=20.0))
        try:
            result = await sandbox.run(job)
        except SeptetError as error:
            raise _refusal(error) from error
    if not result.succeeded or result.stdout != "works\n":
        raise _refusal(NoSandbox(f"a trial run ended with {result.exit_code}"))
    return sandbox


def _refusal(error: SeptetError) -> NoSandbox:
    return NoSandbox(f"bubblewrap is not usable ({error.cause})", _REMEDY)
