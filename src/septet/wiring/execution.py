"""Where programs run, with all that a run may ask for; and one run by itself, for somebody who wants to try it."""

from collections.abc import Sequence

from msgspec.structs import replace

from septet.domain.runs import Cell, Job, RunResult
from septet.ports import Listener
from septet.sandboxes.ladder import choose_sandbox
from septet.sandboxes.showing import with_pictures
from septet.sandboxes.workbench import Workbench


async def workbench(unsafe: bool = False) -> Workbench:
    """The best rung of this machine; NoSandbox is raised before anything has run."""
    return Workbench(await choose_sandbox(unsafe=unsafe), (with_pictures,))


async def run_once(job: Job, unsafe: bool, listen: Listener | None = None) -> RunResult:
    return await (await workbench(unsafe)).run(job, listen)


async def run_cells(
    job: Job, cells: Sequence[str], unsafe: bool, listen: Listener | None = None
) -> list[RunResult]:
    """One after the other in one kernel, to the first that fails."""
    results: list[RunResult] = []
    bench = await workbench(unsafe)
    try:
        for number, code in enumerate(cells):
            cell = replace(job, mode=Cell(code=code, earlier=tuple(cells[:number])))
            results.append(await bench.run(cell, listen))
            if not results[-1].succeeded:
                break
    finally:
        await bench.rest(job.workspace)
    return results
