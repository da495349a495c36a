"""Runs any job on a rung: its mode (screen, server, warm interpreter, kernel cell), network, preparations."""

import os
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import assert_never

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from septet.common.temporary import TemporaryFolder, make_temporary_folder
from septet.domain.runs import Cell, Job, RunResult, Screen, Server
from septet.errors import SandboxFailed, SeptetError
from septet.ports import Listener, Sandbox
from septet.sandboxes import view
from septet.sandboxes.environment import launcher
from septet.sandboxes.kernel import Kernel
from septet.sandboxes.network import allowed_hosts, open_network, proxy, relay_code
from septet.sandboxes.process import RunMonitor, RunningProgram
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.runs import execute_job
from septet.sandboxes.view import existing_folder, shared_source

_WARM_INTERPRETER = Path(__file__).with_name("inside") / "warm_interpreter.py"
_PYTHON_NAMES = ("python", "python3")

Key = tuple[object, ...]


@dataclass(slots=True)
class WarmSandbox:
    """An unused sandbox with a waiting interpreter; it runs one program and is then removed."""

    key: Key
    program: RunningProgram
    control: int
    stack: AsyncExitStack

    @asynccontextmanager
    async def launch(
        self, job: Job, workspace: Path, monitor: RunMonitor, inherited: tuple[int, ...] = ()
    ) -> AsyncGenerator[RunningProgram]:
        async with self.stack:
            with suppress(BrokenPipeError):
                os.write(self.control, b"\0".join(map(os.fsencode, job.command[1:])))
            self.close()
            yield self.program

    def close(self) -> None:
        if self.control >= 0:
            os.close(self.control)
            self.control = -1


@dataclass(slots=True)
class WarmRunner:
    """Runs Python programs in the spare sandbox of their workspace, and everything else in a new sandbox."""

    sandbox: Bubblewrap
    group: TaskGroup
    preload: tuple[str, ...] = ()
    spares: dict[Path, WarmSandbox] = field(default_factory=dict[Path, WarmSandbox])

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        workspace = view.check_workspace(job.workspace)
        if job.tests or not _is_plain_python(
            job.command
        ):  # a started interpreter cannot inherit the report channel
            return await self.sandbox.run(job, listen)
        key = _key(workspace, job)
        spare = await self._take(workspace, key)
        launch = spare.launch if spare else self.sandbox.launch
        try:
            return await execute_job(job, workspace, self.sandbox.rung, launch, listen)
        finally:
            self.group.start_soon(self._prepare, key, job, workspace)

    async def _take(self, workspace: Path, key: Key) -> WarmSandbox | None:
        spare = self.spares.pop(workspace, None)
        if spare is None or (spare.key == key and spare.program.process.poll() is None):
            return spare
        await discard(spare)
        return None

    async def _prepare(self, key: Key, job: Job, workspace: Path) -> None:
        if workspace in self.spares:
            return
        reader, control = os.pipe()
        stack = AsyncExitStack()
        command = ("python", "-c", warm_source(), str(reader), *self.preload)
        waiting_job = replace(job, command=command, stdin=b"")
        try:
            launching = self.sandbox.launch(
                waiting_job, workspace, RunMonitor.of(job.limits, None), (reader,)
            )
            started = await stack.enter_async_context(launching)
        except SeptetError:
            os.close(control)
            return
        finally:
            os.close(reader)
        await self._store(WarmSandbox(key, started, control, stack))

    async def _store(self, spare: WarmSandbox) -> None:
        workspace = spare.key[0]
        assert isinstance(workspace, Path)
        if workspace in self.spares:
            await discard(spare)
        else:
            self.spares[workspace] = spare

    async def close(self) -> None:
        for spare in [*self.spares.values()]:
            await discard(spare)
        self.spares.clear()


@asynccontextmanager
async def open_warm_runner(sandbox: Bubblewrap, preload: tuple[str, ...] = ()) -> AsyncGenerator[WarmRunner]:
    """A warm runner until the context ends; `preload` are modules to import in advance."""
    async with anyio.create_task_group() as group:
        warm = WarmRunner(sandbox, group, preload)
        try:
            yield warm
        finally:
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await warm.close()


async def discard(spare: WarmSandbox) -> None:
    """End a spare sandbox."""
    spare.close()
    spare.program.process.kill()
    with suppress(SeptetError):
        await spare.stack.aclose()


def _key(workspace: Path, job: Job) -> Key:
    """Identifies what a spare was made for; the inode tells a replaced folder from the old one."""
    status = workspace.stat()
    protected = (workspace / ".git").exists()
    variables = tuple(sorted(job.environment.items()))
    folder = (workspace, status.st_dev, status.st_ino, protected, job.mounted_at, job.shared)
    return (*folder, job.limits, variables, job.readable)


def _is_plain_python(command: tuple[str, ...]) -> bool:
    """Whether a command runs Python without interpreter options, which cannot be set after the start."""
    if len(command) < 2 or command[0] not in _PYTHON_NAMES:
        return False
    first = command[1]
    return first.endswith(".py") if first not in ("-c", "-m") else len(command) > 2


@cache
def warm_source() -> str:
    return _WARM_INTERPRETER.read_text()


_INSIDE = Path(__file__).with_name("inside")
_SETTLED_SECONDS, _LONG_SETTLED_SECONDS = 0.6, 3.0
"""How long the display must stay unchanged before the screenshot; longer if a window is optional."""


def apply_mode(job: Job) -> Job:
    """The job with a command that implements its mode. Cells have no command: they run in a kernel."""
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
    """Run the program on a virtual screen; if Xvfb is missing, without one, unless the program needs it."""
    if shutil.which("Xvfb") is None:
        if screen.needed:
            raise SandboxFailed("a program with a window needs Xvfb", "apt install xvfb")
        return replace(job, mode=None)
    settled = _SETTLED_SECONDS if screen.needed else _LONG_SETTLED_SECONDS
    times = str(screen.seconds), str(settled)
    return _inside(job, "screen.py", screen.picture, *times, _need_argument(screen.needed))


def server_job(job: Job, server: Server) -> Job:
    """Run the program as a server: request it once inside the sandbox, print its answer, then terminate it."""
    need = _need_argument(server.needed) if server.holds is None else "checked"
    if server.holds is not None:  # not an argument: the program could read the command line
        job = replace(job, stdin=server.holds.encode())
    return _inside(job, "http_probe.py", str(server.port), server.path, str(server.seconds), need)


def _need_argument(needed: bool) -> str:
    return "needed" if needed else "perhaps"


def _inside(job: Job, program: str, *arguments: str) -> Job:
    command = (*launcher(), inside_source(program), *arguments, *job.command)
    return replace(job, command=command, mode=None)


@cache
def inside_source(name: str) -> str:
    return (_INSIDE / name).read_text()


_MAX_KERNELS = 4

Preparation = Callable[[Job], Job]
"""Changes every job, for example adds the packages of its workspace."""


@dataclass(slots=True)
class KernelSlot:
    """A kernel, the job that it was started for and the folder of its proxy's socket."""

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
    """Turns any job into a plain one and runs it on the rung. Holds the kernels between their cells."""

    rung: Sandbox
    preparations: tuple[Preparation, ...] = ()
    kernels: dict[str, KernelSlot] = field(default_factory=dict[str, KernelSlot])
    spares: dict[Path, WarmSandbox] = field(default_factory=dict[Path, WarmSandbox])

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        existing_folder(job.workspace)
        job = job if isinstance(self.rung, Bubblewrap) else without_mounts(job)
        for prepare in self.preparations:
            job = prepare(job)
        if isinstance(job.mode, Cell):
            return await (await self._kernel(job)).run(job.mode, listen)
        async with open_network(apply_mode(job)) as plain:
            if job.warm and plain.command == job.command and isinstance(self.rung, Bubblewrap):
                return await self._run_warm(self.rung, plain, listen)
            return await self.rung.run(plain, listen)

    async def _run_warm(self, rung: Bubblewrap, job: Job, listen: Listener | None) -> RunResult:
        """Run the job in the prepared sandbox, if there is one; the next one is started before this returns."""
        result: RunResult | SeptetError | None = None
        async with anyio.create_task_group() as group:
            try:
                result = await WarmRunner(rung, group, job.warm, self.spares).run(job, listen)
            except SeptetError as error:
                result = error
        if isinstance(result, SeptetError):
            raise result
        assert result is not None, "a task group that ends normally has run the job"
        return result

    async def _kernel(self, job: Job) -> KernelSlot:
        """The kernel of the workspace; one that was started for a different job is replaced."""
        wanted = replace(job, mode=None, command=())
        slot = self.kernels.pop(job.workspace, None)
        if slot is not None and slot.job != wanted:
            await slot.end()
            slot = None
        slot = slot or _make_slot(self.rung, wanted)
        self.kernels[job.workspace] = slot
        if len(self.kernels) > _MAX_KERNELS:
            await self.kernels.pop(next(iter(self.kernels))).end()
        return slot

    async def release(self, workspace: str) -> None:
        """End the kernel and the prepared sandbox of a workspace. The log has what is needed to rebuild the kernel."""
        slot, spare = self.kernels.pop(workspace, None), self.spares.pop(_real_path(workspace), None)
        with anyio.CancelScope(shield=True):
            if slot is not None:
                await slot.end()
            if spare is not None:
                await discard(spare)


def without_mounts(job: Job) -> Job:
    """Replace mounts on a rung without them: run in the workspace itself, with links to folders and copies of files."""
    for name in job.shared:
        path = Path(job.workspace, name)
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()  # an empty mount point
                path.symlink_to(shared_source(job, name))
            elif path.is_file() and not path.is_symlink() and not path.stat().st_size:
                shutil.copyfile(shared_source(job, name), path)  # through a link it could be written to
    shared = tuple(str(shared_source(job, name)) for name in job.shared)
    return replace(job, mounted_at="", shared=(), readable=(*job.readable, *shared))


def _real_path(workspace: str) -> Path:
    return Path(workspace).resolve()


def _make_slot(rung: Sandbox, job: Job) -> KernelSlot:
    if not isinstance(rung, Bubblewrap):
        raise SandboxFailed("only bubblewrap has a kernel", "run the code as files")
    folder = make_temporary_folder("kernel")
    if job.network == "off":
        return KernelSlot(Kernel(rung, job), job, folder)
    with_socket = replace(job, readable=(*job.readable, str(folder.path)))
    return KernelSlot(Kernel(rung, with_socket, relay_code(folder.path / "proxy", job.network)), job, folder)
