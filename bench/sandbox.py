"""What a run costs: a trivial script through each way of running it, medians of interleaved runs.

python bench/sandbox.py [RUNS]
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

import anyio

from septet.domain.runs import Job
from septet.ports import Sandbox
from septet.sandboxes.bubblewrap import Bubblewrap
from septet.sandboxes.unsafe import UnsafeLocal

TRIVIAL = "print(1)"

Way = Callable[[], Awaitable[None]]


async def plain() -> None:
    done = subprocess.run(["python", "-c", TRIVIAL], capture_output=True, check=True)  # noqa: ASYNC221  the floor
    assert done.stdout == b"1\n"


def through(sandbox: Sandbox, folder: str) -> Way:
    async def run() -> None:
        result = await sandbox.run(Job(command=("python", "-c", TRIVIAL), workspace=folder))
        assert result.stdout == "1\n", result

    return run


async def measure(ways: dict[str, Way], runs: int) -> dict[str, float]:
    """Milliseconds, the ways taking turns so that the machine's moods hit all of them."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(runs + 2):
        for name, way in ways.items():
            began = time.perf_counter()
            await way()
            if turn >= 2:
                taken[name].append(1000 * (time.perf_counter() - began))
    return {name: statistics.median(times) for name, times in taken.items()}


async def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "plain python -c": plain,
            "bubblewrap": through(Bubblewrap.found(), folder),
            "unsafe local": through(UnsafeLocal(), folder),
        }
        figures = await measure(ways, runs)
    floor = figures["plain python -c"]
    for name, milliseconds in figures.items():
        print(f"{name:24} {milliseconds:7.1f} ms  {milliseconds / floor:5.2f} x")


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 50)
