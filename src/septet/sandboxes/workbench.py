"""A rung with everything that a run may ask for around it: its mode, a kernel, a way to the network, plots."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from msgspec.structs import replace

from septet.common.temporary import TemporaryFolder, make_temporary_folder
from septet.domain.runs import Cell, Job, RunResult
from septet.errors import SandboxFailed, SeptetError
from septet.ports import Listener, Sandbox
from septet.sandboxes.kernel import Kernel
from septet.sandboxes.network import hosts_of, proxy, reaching, relaying
from septet.sandboxes.run_modes import in_its_mode
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.view import existing_folder
from septet.sandboxes.warm import Spare, Warm, discard

_MOST_KERNELS = 4

Fitting = Callable[[Job], Job]
"""Something that every job gets, such as the packages of its workspace."""


@dataclass(slots=True)
class KeptKernel:
    """A kernel that waits for its next cell, the job that it was made for and the place of its proxy."""

    kernel: Kernel
    job: Job
    place: TemporaryFolder

    async def run(self, cell: Cell, listen: Listener | None) -> RunResult:
        if tuple(self.kernel.succeeded) != cell.earlier:
            await self.kernel.restart(cell.earlier)
        async with AsyncExitStack() as stack:
            if self.job.network != "off":
                socket = self.place.path / "proxy"
                socket.unlink(missing_ok=True)
                await stack.enter_async_context(proxy(socket, hosts_of(self.job.network)))
            return await self.kernel.run(cell.code, listen)

    async def end(self) -> None:
        await self.kernel.restart()
        self.place.remove()


@dataclass(slots=True)
class Workbench:
    """Makes a plain job of any job and gives it to the rung. Kernels wait here between their cells."""

    rung: Sandbox
    fittings: tuple[Fitting, ...] = ()
    kernels: dict[str, KeptKernel] = field(default_factory=dict[str, KeptKernel])
    spares: dict[Path, Spare] = field(default_factory=dict[Path, Spare])

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        existing_folder(job.workspace)
        for fit in self.fittings:
            job = fit(job)
        if isinstance(job.mode, Cell):
            return await (await self._kernel(job)).run(job.mode, listen)
        async with reaching(in_its_mode(job)) as plain:
            if job.warm and plain.command == job.command and isinstance(self.rung, Bubblewrap):
                return await self._warm(self.rung, plain, listen)
            return await self.rung.run(plain, listen)

    async def _warm(self, rung: Bubblewrap, job: Job, listen: Listener | None) -> RunResult:
        """In the spare that waits, if one does; before coming back, the next one is started."""
        result: RunResult | SeptetError | None = None
        async with anyio.create_task_group() as group:
            try:
                result = await Warm(rung, group, job.warm, self.spares).run(job, listen)
            except SeptetError as error:
                result = error
        if isinstance(result, SeptetError):
            raise result
        assert result is not None, "a task group that ends quietly has done its work"
        return result

    async def _kernel(self, job: Job) -> KeptKernel:
        """The workspace's own; one that was made for other circumstances gives way."""
        wanted = replace(job, mode=None, command=())
        kept = self.kernels.pop(job.workspace, None)
        if kept is not None and kept.job != wanted:
            await kept.end()
            kept = None
        kept = kept or _made(self.rung, wanted)
        self.kernels[job.workspace] = kept
        if len(self.kernels) > _MOST_KERNELS:
            await self.kernels.pop(next(iter(self.kernels))).end()
        return kept

    async def rest(self, workspace: str) -> None:
        """Nobody works there for now: nothing waits there any longer. What a kernel knew is in the log."""
        kept, spare = self.kernels.pop(workspace, None), self.spares.pop(_real(workspace), None)
        with anyio.CancelScope(shield=True):
            if kept is not None:
                await kept.end()
            if spare is not None:
                await discard(spare)


def _real(workspace: str) -> Path:
    return Path(workspace).resolve()


def _made(rung: Sandbox, job: Job) -> KeptKernel:
    if not isinstance(rung, Bubblewrap):
        raise SandboxFailed("only bubblewrap has a kernel", "run the code as files")
    place = make_temporary_folder("kernel")
    if job.network == "off":
        return KeptKernel(Kernel(rung, job), job, place)
    seen = replace(job, readable=(*job.readable, str(place.path)))
    return KeptKernel(Kernel(rung, seen, relaying(place.path / "proxy", job.network)), job, place)
