"""Opens sandboxes with packages and all that a job needs, and runs single programs for `septet exec`."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import anyio
from anyio import to_thread
from msgspec.structs import replace

from septet.common.temporary import remove_stale_folders
from septet.domain.packages import Installation, MissingPackages
from septet.domain.runs import Cell, Job, RunResult
from septet.ports import Listener, Sandbox
from septet.sandboxes.interpreters import Interpreters
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.ladder import choose_sandbox, store_proofs
from septet.sandboxes.packages import Index, PackageInstaller
from septet.settings.home import Home, find_home


async def open_job_runner(home: Home, unsafe: bool = False) -> JobRunner:
    """Open the best rung of this machine, tested before its first run. Raises NoSandbox before anything runs."""
    await to_thread.run_sync(remove_stale_folders)
    rung = await choose_sandbox(unsafe=unsafe, proofs=proofs_in(home))
    return JobRunner(rung, (Interpreters(home.cache).prepare, packages_for(rung, home).prepare))


def proofs_in(home: Home) -> Path:
    return home.data / "sandboxes"


async def keep_checked(home: Home) -> None:
    """Store which sandboxes were tested, now that the home folder is written to anyway."""
    await to_thread.run_sync(store_proofs, proofs_in(home))


class SharedSandbox:
    """One sandbox for many chats: opened with the first program, and never for more programs at once than `limit`.

    Who waits longest is next, so that no chat holds up the others. NoSandbox is raised by the first run.
    """

    def __init__(self, open_sandbox: Callable[[], Awaitable[Sandbox]], limit: int | None = None) -> None:
        self._open = open_sandbox
        self._opening = anyio.Lock()
        self._opened: Sandbox | None = None
        self._slots = anyio.Semaphore(limit or max(2, os.cpu_count() or 1))

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        async with self._slots:
            return await (await self.opened()).run(job, listen)

    async def opened(self) -> Sandbox:
        async with self._opening:
            self._opened = self._opened or await self._open()
        return self._opened

    async def release(self, workspace: str) -> None:
        if self._opened is not None:
            await release_sandbox(self._opened, workspace)


def packages_for(sandbox: Sandbox, home: Home, setup: Path | None = None) -> PackageInstaller:
    """The installer of packages for workspaces, which runs in the rung; `setup` is as in a job."""
    return PackageInstaller(home.environments, rung_of(sandbox), Index.from_environment(), setup)


def rung_of(sandbox: Sandbox) -> Sandbox:
    """The sandbox without the job runner's preparation; a shared one is opened when first used."""

    async def open_rung() -> Sandbox:
        return rung_of(await sandbox.opened()) if isinstance(sandbox, SharedSandbox) else sandbox

    if isinstance(sandbox, SharedSandbox):
        return SharedSandbox(open_rung)
    return sandbox.rung if isinstance(sandbox, JobRunner) else sandbox


async def install_missing_packages(
    workspace: str, sources: Mapping[str, str], agree: Callable[[MissingPackages], bool], unsafe: bool = False
) -> Installation | None:
    """Install the packages that the sources need, if `agree` says so; None if nothing is missing."""
    home = find_home()
    packages = packages_for(await choose_sandbox(unsafe=unsafe, proofs=proofs_in(home)), home)
    missing = await packages.find_missing(workspace, sources)
    return await packages.install(workspace, missing) if missing and agree(missing) else None


async def run_once(job: Job, unsafe: bool, listen: Listener | None = None) -> RunResult:
    return await (await open_job_runner(find_home(), unsafe)).run(job, listen)


async def run_cells(
    job: Job, cells: Sequence[str], unsafe: bool, listen: Listener | None = None
) -> list[RunResult]:
    """Run the cells in order in one kernel, until one fails."""
    results: list[RunResult] = []
    runner = await open_job_runner(find_home(), unsafe)
    try:
        for number, code in enumerate(cells):
            cell = replace(job, mode=Cell(code=code, earlier=tuple(cells[:number])))
            results.append(await runner.run(cell, listen))
            if not results[-1].succeeded:
                break
    finally:
        await runner.release(job.workspace)
    return results


async def release_sandbox(sandbox: Sandbox, workspace: str) -> None:
    """Release the sandbox's prestarted processes for the workspace, because no chat works there now."""
    if isinstance(sandbox, JobRunner | SharedSandbox):
        await sandbox.release(workspace)
