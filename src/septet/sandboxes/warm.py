"""Warm runs: a sandbox with a started interpreter is prepared in advance for the next Python program."""

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
        command = ("python", "-c", _source(), str(reader), *self.preload)
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
def _source() -> str:
    return _WARM_INTERPRETER.read_text()
