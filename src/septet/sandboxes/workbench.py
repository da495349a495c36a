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
from septet.sandboxes.network import allowed_hosts, open_network, proxy, relay_code
from septet.sandboxes.run_modes import apply_mode
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.view import existing_folder
from septet.sandboxes.warm import WarmRunner, WarmSandbox, discard

_MAX_KERNELS = 4

Preparation = Callable[[Job], Job]
"""Something that every job gets, such as the packages of its workspace."""


@dataclass(slots=True)
class KernelSlot:
    """A kernel that waits for its next cell, the job that it was made for and the place of its proxy."""

    kernel: Kernel
    job: Job
    proxy_folder: TemporaryFolder

    async def run(self, cell: Cell, listen: Listener | None) -> RunResult:
        if tuple(self.kernel.succeeded) != cell.earlier:
            await self.kernel.restart(cell.earlier)
        async with AsyncExitStack() as stack:
            if self.job.network != "off":
                socket = self.proxy_folder.path / "proxy"
                socket.unlink(missing_ok=True)
                await stack.enter_async_context(proxy(socket, allowed_hosts(self.job.network)))
            return await self.kernel.run(cell.code, listen)

    async def end(self) -> None:
        await self.kernel.restart()
        self.proxy_folder.remove()


@dataclass(slots=True)
class JobRunner:
    """Makes a plain job of any job and gives it to the rung. Kernels wait here between their cells."""

    rung: Sandbox
    preparations: tuple[Preparation, ...] = ()
    kernels: dict[str, KernelSlot] = field(default_factory=dict[str, KernelSlot])
    spares: dict[Path, WarmSandbox] = field(default_factory=dict[Path, WarmSandbox])

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        existing_folder(job.workspace)
        for fit in self.preparations:
            job = fit(job)
        if isinstance(job.mode, Cell):
            return await (await self._kernel(job)).run(job.mode, listen)
        async with open_network(apply_mode(job)) as plain:
            if job.warm and plain.command == job.command and isinstance(self.rung, Bubblewrap):
                return await self._run_warm(self.rung, plain, listen)
            return await self.rung.run(plain, listen)

    async def _run_warm(self, rung: Bubblewrap, job: Job, listen: Listener | None) -> RunResult:
        """In the spare that waits, if one does; before coming back, the next one is started."""
        result: RunResult | SeptetError | None = None
        async with anyio.create_task_group() as group:
            try:
                result = await WarmRunner(rung, group, job.warm, self.spares).run(job, listen)
            except SeptetError as error:
                result = error
        if isinstance(result, SeptetError):
            raise result
        assert result is not None, "a task group that ends quietly has done its work"
        return result

    async def _kernel(self, job: Job) -> KernelSlot:
        """The workspace's own; one that was made for other circumstances gives way."""
        wanted = replace(job, mode=None, command=())
        kept = self.kernels.pop(job.workspace, None)
        if kept is not None and kept.job != wanted:
            await kept.end()
            kept = None
        kept = kept or _make_slot(self.rung, wanted)
        self.kernels[job.workspace] = kept
        if len(self.kernels) > _MAX_KERNELS:
            await self.kernels.pop(next(iter(self.kernels))).end()
        return kept

    async def release(self, workspace: str) -> None:
        """Nobody works there for now: nothing waits there any longer. What a kernel knew is in the log."""
        kept, spare = self.kernels.pop(workspace, None), self.spares.pop(_real_path(workspace), None)
        with anyio.CancelScope(shield=True):
            if kept is not None:
                await kept.end()
            if spare is not None:
                await discard(spare)


def _real_path(workspace: str) -> Path:
    return Path(workspace).resolve()


def _make_slot(rung: Sandbox, job: Job) -> KernelSlot:
    if not isinstance(rung, Bubblewrap):
        raise SandboxFailed("only bubblewrap has a kernel", "run the code as files")
    place = make_temporary_folder("kernel")
    if job.network == "off":
        return KernelSlot(Kernel(rung, job), job, place)
    seen = replace(job, readable=(*job.readable, str(place.path)))
    return KernelSlot(Kernel(rung, seen, relay_code(place.path / "proxy", job.network)), job, place)
