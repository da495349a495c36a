"""One sandbox for many chats. What opens it is imported with the first program: a talk runs none."""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import anyio

from septet.domain.packages import Installation, MissingPackages
from septet.domain.runs import Job, RunResult
from septet.ports import Listener, Sandbox
from septet.settings.home import Home

if TYPE_CHECKING:
    from septet.sandboxes.packages import PackageInstaller


@runtime_checkable
class Releasable(Protocol):
    """A sandbox with processes that wait for a workspace's next program."""

    async def release(self, workspace: str) -> None:
        """End them, because no chat works there now."""
        ...


class SharedSandbox:
    """Opened with the first program, and never for more programs at once than `limit`.

    Who waits longest is next, so that no chat holds up the others. NoSandbox is raised by the first run.
    """

    def __init__(
        self,
        open_sandbox: Callable[[], Awaitable[Sandbox]],
        limit: int | None = None,
        slots: anyio.Semaphore | None = None,
    ) -> None:
        self._open = open_sandbox
        self._opening = anyio.Lock()
        self._opened: Sandbox | None = None
        self.slots = slots or anyio.Semaphore(limit or max(2, os.cpu_count() or 1))

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        async with self.slots:
            return await (await self.opened()).run(job, listen)

    async def opened(self) -> Sandbox:
        async with self._opening:
            self._opened = self._opened or await self._open()
        return self._opened

    async def release(self, workspace: str) -> None:
        if isinstance(self._opened, Releasable):
            await self._opened.release(workspace)


class LazyInstaller:
    """An installer of packages that is imported when a program needs it: a talk runs none."""

    def __init__(self, sandbox: Sandbox, home: Home, setup: Path | None) -> None:
        self._sandbox = sandbox
        self._home = home
        self._setup = setup

    @cached_property
    def _installer(self) -> "PackageInstaller":
        return packages_for(self._sandbox, self._home, self._setup)

    async def find_missing(self, workspace: str, sources: Mapping[str, str]) -> MissingPackages:
        return await self._installer.find_missing(workspace, sources)

    async def install(self, workspace: str, missing: MissingPackages) -> Installation:
        return await self._installer.install(workspace, missing)

    def setup_job(self, job: Job) -> Job:
        return self._installer.setup_job(job)


def packages_for(sandbox: Sandbox, home: Home, setup: Path | None = None) -> "PackageInstaller":
    """The installer of packages for workspaces, which runs in the rung; `setup` is as in a job."""
    from septet.sandboxes.packages import Index, PackageInstaller

    return PackageInstaller(home.environments, rung_of(sandbox), Index.from_environment(), setup)


def rung_of(sandbox: Sandbox) -> Sandbox:
    """The sandbox without the job runner's preparation; a shared one is opened when first used."""
    if isinstance(sandbox, SharedSandbox):

        async def open_rung() -> Sandbox:
            return rung_of(await sandbox.opened())

        return SharedSandbox(open_rung, slots=sandbox.slots)
    from septet.sandboxes.job_runner import JobRunner

    return sandbox.rung if isinstance(sandbox, JobRunner) else sandbox
