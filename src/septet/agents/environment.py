"""Finds out what programs of a chat run with: the Python, packages and commands of the real sandbox."""

import msgspec

from septet.agents.run_context import RunContext
from septet.common.temporary import temporary_folder
from septet.common.values import Value
from septet.domain.events import EnvironmentProbed
from septet.domain.runs import Job, Limits
from septet.domain.state import State
from septet.errors import SeptetError

COMMANDS = ("git", "node", "npm", "cargo", "go", "java", "gcc", "make", "sqlite3", "curl", "rg")
SECONDS = 20.0
PROBE = """
import json, shutil, sys
from importlib import metadata, util
found = {str(one.metadata["Name"]): one.version for one in metadata.distributions()}
if util.find_spec("pytest"):
    found.setdefault("pytest", "")
for name in ("pip", "setuptools", "wheel", "None"):
    found.pop(name, None)
packages = [f"{name} {found[name]}".strip() for name in sorted(found, key=str.lower)]
python = ".".join(map(str, sys.version_info[:3]))
commands = [one for one in sys.argv[1:] if shutil.which(one)]
print(json.dumps({"python": python, "packages": packages, "commands": commands}))
"""


class Found(Value):
    """What the probe prints."""

    python: str
    packages: tuple[str, ...]
    commands: tuple[str, ...]


async def probe_environment(state: State, run_context: RunContext) -> EnvironmentProbed | None:
    """Run the probe where the chat's programs will run; None if that is on another machine, or nothing can run."""
    with temporary_folder("probe") as empty:
        scratch = run_context.scratch
        job = Job(
            command=("python", "-c", PROBE, *COMMANDS),
            workspace=str(scratch.work.root if scratch else empty),
            limits=Limits(seconds=SECONDS),
            home=state.workspace,
        )
        try:
            result = await run_context.sandbox.run(run_context.mounted(job))
            found = msgspec.json.decode(result.stdout.strip().rpartition("\n")[2], type=Found)
        except (SeptetError, msgspec.MsgspecError):
            return None
    return EnvironmentProbed(python=found.python, packages=found.packages, commands=found.commands)
