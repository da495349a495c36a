"""Runs any job on a rung: with its mode (screen, server, cell in a kernel), its network and what every job gets."""

import shutil
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import assert_never

import anyio
from msgspec.structs import replace

from septet.common.temporary import TemporaryFolder, make_temporary_folder
from septet.domain.runs import Cell, Job, RunResult, Screen, Server
from septet.errors import SandboxFailed, SeptetError
from septet.ports import Listener, Sandbox
from septet.sandboxes.environment import launcher
from septet.sandboxes.kernel import Kernel
from septet.sandboxes.network import allowed_hosts, open_network, proxy, relay_code
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.view import existing_folder
from septet.sandboxes.warm import WarmRunner, WarmSandbox, discard

_INSIDE = Path(__file__).with_name("inside")
_STILL_SECONDS, _SURELY_STILL_SECONDS = 0.6, 3.0
"""How long a picture stays the same until it is taken; longer where the program might go on to something else."""


def apply_mode(job: Job) -> Job:
    """The job whose command does what the mode asks for. Cells are no commands: see `kernels`."""
    match job.mode:
        case None:
            return job
        case Screen():
            return screen_job(job, job.mode)
        case Server():
            return server_job(job, job.mode)
        case Cell():
            raise SandboxFailed("a cell runs in a kernel only", "run it as a file")
        case _:
            assert_never(job.mode)


def screen_job(job: Job, screen: Screen) -> Job:
    """The program on a screen of its own; one that only might use it does without where there is none."""
    if shutil.which("Xvfb") is None:
        if screen.needed:
            raise SandboxFailed("a program with a window needs Xvfb", "apt install xvfb")
        return replace(job, mode=None)
    settled = _STILL_SECONDS if screen.needed else _SURELY_STILL_SECONDS
    times = str(screen.seconds), str(settled)
    return _inside(job, "screen.py", screen.picture, *times, _need_word(screen.needed))


def server_job(job: Job, server: Server) -> Job:
    """The program as a server: asked once on its port inside the sandbox, its answer shown, then ended."""
    word = _need_word(server.needed) if server.holds is None else "checked"
    if server.holds is not None:  # not among the words of the command, which the program could read
        job = replace(job, stdin=server.holds.encode())
    return _inside(job, "http_probe.py", str(server.port), server.path, str(server.seconds), word)


def _need_word(needed: bool) -> str:
    return "needed" if needed else "perhaps"


def _inside(job: Job, program: str, *arguments: str) -> Job:
    command = (*launcher(), _source(program), *arguments, *job.command)
    return replace(job, command=command, mode=None)


@cache
def _source(name: str) -> str:
    return (_INSIDE / name).read_text()


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
        if tuple(self.kernel.successful_cells) != cell.earlier:
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
        job = job if isinstance(self.rung, Bubblewrap) else unmounted(job)
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


def unmounted(job: Job) -> Job:
    """On a rung without mounts the program runs where its files are; what it shares is linked there."""
    for name in job.shared:
        place = Path(job.workspace, name)
        with suppress(OSError):
            if place.is_dir() and not place.is_symlink():
                place.rmdir()  # an empty one, made to be mounted on
                place.symlink_to(Path(job.mounted_at, name))
    shared = tuple(f"{job.mounted_at}/{name}" for name in job.shared)
    return replace(job, mounted_at="", shared=(), readable=(*job.readable, *shared))


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
