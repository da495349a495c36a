"""A rung with everything that a run may ask for around it: its mode, a kernel, packages, a way to the network."""

from dataclasses import dataclass

from septet.domain.runs import Job, RunResult
from septet.ports import Listener, Sandbox
from septet.sandboxes.modes import in_its_mode


@dataclass(frozen=True, slots=True)
class Workbench:
    """Makes a plain job of any job and gives it to the rung."""

    rung: Sandbox

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        return await self.rung.run(in_its_mode(job), listen)
