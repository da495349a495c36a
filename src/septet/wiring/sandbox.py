"""Opens sandboxes with packages and all that a job needs, and runs single programs for `septet exec`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from anyio import to_thread
from msgspec.structs import replace

from septet.common.temporary import remove_stale_folders
from septet.domain.packages import Installation, MissingPackages
from septet.domain.runs import Cell, Job, RunResult
from septet.ports import Listener
from septet.sandboxes.interpreters import Interpreters
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.ladder import choose_sandbox, has_proofs, store_proofs
from septet.settings.home import Home, find_home
from septet.wiring.shared_sandbox import packages_for


async def open_job_runner(home: Home, unsafe: bool = False) -> JobRunner:
    """Open the best rung of this machine, tested before its first run. Raises NoSandbox before anything runs."""
    await to_thread.run_sync(remove_stale_folders)
    rung = await choose_sandbox(unsafe=unsafe, proofs=proofs_in(home))
    return JobRunner(rung, (Interpreters(home.cache).prepare, packages_for(rung, home).prepare))


def proofs_in(home: Home) -> Path:
    return home.data / "sandboxes"


async def keep_checked(home: Home) -> None:
    """Store which sandboxes were tested, now that the home folder is written to anyway."""
    if has_proofs():
        await to_thread.run_sync(store_proofs, proofs_in(home))


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
