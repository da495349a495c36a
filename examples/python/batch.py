"""Many goals at once: `python batch.py goals.txt FOLDER`. As many programs run at once as the machine has cores."""

import asyncio
import sys
from pathlib import Path

from septet import Result, Team


async def build_all(goals: list[str], folder: Path) -> list[Result]:
    async with Team.load("iterate") as team:
        runs = [team.start(goal, workspace=folder / str(number)) for number, goal in enumerate(goals, 1)]
        return [await run for run in runs]


if __name__ == "__main__":
    for result in asyncio.run(build_all(Path(sys.argv[1]).read_text().splitlines(), Path(sys.argv[2]))):
        print(result.status, result.workspace)
