"""A batch of goals, each built, tested and run in the sandbox: how busy the processors are, and how many programs run.

python bench/batch.py [--goals 200]

The model is a script, so that all work is ours and the sandbox's. A program counts as running from when the sandbox
of the team takes it to when its result is there; the bound is as many as the machine has processors. Busy is what
the whole machine's processors did of what they could have done: what else runs on it counts too.
"""

import argparse
import asyncio
import os
import tempfile
from collections import defaultdict
from pathlib import Path
from time import perf_counter

from septet.domain.runs import Job, RunResult
from septet.ports import Listener, Sandbox
from septet.wiring.api import Team
from septet.wiring.sandbox import keep_checked
from septet.wiring.shared_sandbox import SharedSandbox

SCRIPT = Path(__file__).absolute().parent.parent / "tests" / "scripts" / "small.yaml"


class Observed:
    """The sandbox of a team, with how many programs ran in it at once, and for how long so many did."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.programs, self.running = 0, 0
        self.seconds: defaultdict[int, float] = defaultdict(float)
        self._since = perf_counter()

    def _change(self, by: int) -> None:
        now = perf_counter()
        self.seconds[self.running] += now - self._since
        self._since = now
        self.running += by

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        self.programs += 1
        self._change(1)
        try:
            return await self._sandbox.run(job, listen)
        finally:
            self._change(-1)


def busy_seconds() -> float:
    """What all processors have worked since the machine started."""
    user, nice, system, _idle, _waiting, *interrupts = map(
        int, Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    )
    return (user + nice + system + sum(interrupts[:2])) / os.sysconf("SC_CLK_TCK")


async def build_all(goals: int, folder: Path) -> tuple[Observed, float, float]:
    observed: list[Observed] = []
    async with Team.load("iterate", model=f"scripted:{SCRIPT}", home=folder / "home") as team:

        async def open_observed() -> Sandbox:
            opened = await team.session.sandbox()
            await keep_checked(team.session.home)
            observed.append(Observed(opened))
            return observed[0]

        team.sandbox = SharedSandbox(open_observed)
        await team.start("add two numbers")  # opens the sandbox
        observed[0].seconds.clear()
        wall, cpu = perf_counter(), busy_seconds()
        runs = [
            team.start(f"add two numbers, {number}", workspace=folder / str(number))
            for number in range(goals)
        ]
        results = [await run for run in runs]
        wall, cpu = perf_counter() - wall, busy_seconds() - cpu
    assert all(result.status == "done" for result in results), results
    return observed[0], wall, cpu


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--goals", type=int, default=200)
    given = parser.parse_args()
    cores, before = os.cpu_count() or 1, os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        observed, wall, cpu = asyncio.run(build_all(given.goals, Path(folder)))
    print(f"{given.goals} goals, {observed.programs} programs: {wall:.1f} s, load {before:.1f} before")
    print(
        f"busy: {cpu / wall / cores:.0%} of {cores} processors, {cpu / given.goals * 1e3:.0f} ms of CPU a goal"
    )
    for running, seconds in sorted(observed.seconds.items()):
        print(f"{running:4} programs at once: {seconds / wall:.0%} of the time")


if __name__ == "__main__":
    main()
