"""The warm path: the next sandbox already waits, with an interpreter started, for a program of its own."""

import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from septet.domain.runs import Job, RunResult
from septet.errors import SeptetError
from septet.ports import Listener
from septet.sandboxes import view
from septet.sandboxes.process import RunMonitor, RunningProgram
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.runs import execute_job

_WAITING = Path(__file__).with_name("inside") / "warm_interpreter.py"
_PYTHON = ("python", "python3")

Key = tuple[object, ...]


@dataclass(slots=True)
class WarmSandbox:
    """A sandbox that nothing ran in yet; it is used once and then taken away with all that is in it."""

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
    """Runs Python programs in the spare of their workspace and everything else in a fresh sandbox."""

    sandbox: Bubblewrap
    group: TaskGroup
    preload: tuple[str, ...] = ()
    spares: dict[Path, WarmSandbox] = field(default_factory=dict[Path, WarmSandbox])

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        workspace = view.check_workspace(job.workspace)
        if job.tests or not _is_plain_python(job.command):  # who waits already inherits nothing more
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
        reading, control = os.pipe()
        stack = AsyncExitStack()
        command = ("python", "-c", _source(), str(reading), *self.preload)
        waiting = replace(job, command=command, stdin=b"")
        try:
            launched = self.sandbox.launch(waiting, workspace, RunMonitor.of(job.limits, None), (reading,))
            started = await stack.enter_async_context(launched)
        except SeptetError:
            os.close(control)
            return
        finally:
            os.close(reading)
        await self._keep(WarmSandbox(key, started, control, stack))

    async def _keep(self, spare: WarmSandbox) -> None:
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
    """A warm sandbox for as long as the context lasts; `preload` are modules to have imported already."""
    async with anyio.create_task_group() as group:
        warm = WarmRunner(sandbox, group, preload)
        try:
            yield warm
        finally:
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await warm.close()


async def discard(spare: WarmSandbox) -> None:
    """Told nothing, the interpreter ends by itself."""
    spare.close()
    spare.program.process.kill()
    with suppress(SeptetError):
        await spare.stack.aclose()


def _key(workspace: Path, job: Job) -> Key:
    """What a spare must have been made for; a folder that was replaced is another folder."""
    status = workspace.stat()
    protected = (workspace / ".git").exists()
    variables = tuple(sorted(job.environment.items()))
    folder = (workspace, status.st_dev, status.st_ino, protected, job.mounted_at, job.shared)
    return (*folder, job.limits, variables, job.readable)


def _is_plain_python(command: tuple[str, ...]) -> bool:
    """Without options of the interpreter: those cannot be set once it has started."""
    if len(command) < 2 or command[0] not in _PYTHON:
        return False
    first = command[1]
    return first.endswith(".py") if first not in ("-c", "-m") else len(command) > 2


@cache
def _source() -> str:
    return _WAITING.read_text()
