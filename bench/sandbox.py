"""What a run costs: a trivial script by each way of running it, medians of runs that take turns.

    python bench/sandbox.py [RUNS]

Every way is measured as a person meets it, after a pause: what is prepared while nothing runs is ready. What the first
run of a process costs, for which nothing is, is told too. With numpy installed beside Septet, it is lent to the
programs and `import numpy` is measured as well. On a machine that does other things, `chrt -r 20 python
bench/sandbox.py` (as root) keeps those out.
"""

import importlib.util
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
from msgspec.structs import replace

from septet.domain.runs import Job
from septet.ports import Sandbox
from septet.sandboxes.interpreters import Interpreters
from septet.sandboxes.job_runner import WarmRunner, open_warm_runner
from septet.sandboxes.rungs.bubblewrap import Bubblewrap

SETTLED = 0.15


Way = Callable[[], Awaitable[None]]


def plain(code: str) -> Way:
    async def run() -> None:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)  # noqa: ASYNC221  the floor
        assert done.stdout == b"1\n"

    return run


def through(sandbox: Sandbox, folder: str, code: str) -> Way:
    """As a chat runs it: with the interpreter and the modules of programs."""
    own = sysconfig.get_path("purelib") if "numpy" in code else ""
    job = Interpreters(Path(folder).parent / "septet-bench").prepare(
        Job(command=("python", "-c", code), workspace=folder)
    )
    path = os.pathsep.join(filter(None, [job.environment["PYTHONPATH"], own]))
    variables = {**job.environment, "PYTHONPATH": path}
    job = replace(job, environment=variables, readable=(*job.readable, *filter(None, [own])))

    async def run() -> None:
        result = await sandbox.run(job)
        assert result.stdout == "1\n", result

    return run


async def settle(warm: WarmRunner) -> None:
    """Until the next spare waits, so that making it burdens nobody's turn."""
    while not warm.spares:  # noqa: ASYNC110  nobody is told when a spare is ready
        await anyio.sleep(0.01)
    await anyio.sleep(SETTLED)


async def timed(way: Way) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    await way()
    return 1000 * (time.perf_counter() - began)


async def measure(ways: dict[str, Way], warm: WarmRunner, runs: int) -> dict[str, list[float]]:
    """The first run and the others, the ways taking turns so that the machine's moods hit all of them."""
    taken = {name: [await timed(way)] for name, way in ways.items()}
    for _ in range(runs):
        for name, way in ways.items():
            await settle(warm)
            taken[name].append(await timed(way))
    return taken


async def compare(code: str, preload: tuple[str, ...], runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_warm_runner(Bubblewrap.detect(), preload) as warm:
            ways = {
                "plain python -c": plain(code),
                "full sandbox": through(Bubblewrap.detect(), folder, code),
                "warm sandbox": through(warm, folder, code),
            }
            figures = await measure(ways, warm, runs)
    medians = {name: statistics.median(times) for name, (_, *times) in figures.items()}
    print(f"{code!r}, median of {runs}, load {os.getloadavg()[0]:.1f}")
    for name, (first, *times) in figures.items():
        ratio = medians[name] / medians["plain python -c"]
        print(
            f"  {name:16} {medians[name]:7.1f} ms {ratio:5.2f} x  (least {min(times):.1f}, first {first:.1f})"
        )


async def main(runs: int) -> None:
    await compare("print(1)", (), runs)
    if importlib.util.find_spec("numpy"):
        await compare("import numpy; print(1)", ("numpy",), runs)


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 50)
