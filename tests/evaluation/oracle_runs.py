"""Whole suites done by a model that knows the answers, in each way and with each fault: nothing may be lost.

    PYTHONPATH=tests python -m evaluation.oracle_runs SUITE [--tasks N --seed S] [--ways …] [--faults …] [--jobs K]
        [--together K] [--keep FOLDER] [--out FILE]

Prints a row for each way and fault, and ends with 1 if a task is not solved or not called done. A second call with
the same FILE goes on.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import anyio
import msgspec
from evaluation.oracle import FAULTS, AllWaysOracle, Fault, team_file

from septet.common.values import Value
from septet.evaluation.report import ModeSummary, Report
from septet.evaluation.suites import EvalTask, read_suite, sample_tasks
from septet.testing.replies import ReceivedRequest, Reply, Script
from septet.testing.server import serve_mock

WAYS = ("iterate", "text", "small", "autocoder", "pair", "assistant")
ENDS = {"assistant": "answered"}
"""How a chat of the way ends that has done its work, where not as done."""
HEADER = "| way | fault | tasks | right | done | calls | requests | s | ends |\n|---|---|---|---|---|---|---|---|---|"


class Row(Value, omit_defaults=False):
    way: str
    fault: Fault
    tasks: int
    right: int
    done: int
    calls: int
    requests: int
    """What the model was asked, the lost answers of killed processes and late ones among them."""
    seconds: float
    ends: dict[str, int]

    @property
    def is_whole(self) -> bool:
        return self.right == self.done == self.tasks

    def __str__(self) -> str:
        ends = ", ".join(f"{end} {count}" for end, count in self.ends.items())
        figures = (self.tasks, self.right, self.done, self.calls, self.requests, f"{self.seconds:.0f}")
        return f"| {self.way} | {self.fault} | {' | '.join(map(str, figures))} | {ends} |"


class Alarm:
    """A script that tells when so many requests have come."""

    def __init__(self, script: Script) -> None:
        self.count = 0
        self._script = script
        self._waiting: dict[int, anyio.Event] = {}

    def __call__(self, seen: ReceivedRequest) -> Reply:
        self.count += 1
        for count in [one for one in self._waiting if one <= self.count]:
            self._waiting.pop(count).set()
        return self._script(seen)

    def at(self, count: int) -> anyio.Event:
        return self._waiting.setdefault(count, anyio.Event())


async def run_suite(tasks: Sequence[EvalTask], way: str, fault: Fault, folder: Path, jobs: int) -> Row:
    """One way with one fault; `kill` ends the program by force twice, after a third and two thirds of the work."""
    folder.mkdir(parents=True)
    (folder / "team.yaml").write_bytes(team_file(way))
    (folder / "suite.jsonl").write_bytes(b"".join(msgspec.json.encode(task) + b"\n" for task in tasks))
    alarm, started = Alarm(AllWaysOracle(tasks, fault)), monotonic()
    async with serve_mock(alarm) as server:
        if fault == "kill":
            for number in (1, 2):
                await killed(command(server.url, folder, jobs), folder, alarm.at(number * len(tasks)))
        done = await anyio.run_process(
            command(server.url, folder, jobs), env=environment(folder), check=False
        )
    if done.returncode != 0:
        raise RuntimeError(f"{way}, {fault}: {done.stderr.decode()[-2000:]}")
    team = msgspec.json.decode(done.stdout, type=Report).modes["team"]
    return row_of(way, fault, team, alarm.count, monotonic() - started)


def row_of(way: str, fault: Fault, team: ModeSummary, requests: int, seconds: float) -> Row:
    return Row(
        way=way,
        fault=fault,
        tasks=team.tasks,
        right=team.passed,
        done=team.ends.get(ENDS.get(way, "done"), 0),
        calls=team.calls,
        requests=requests,
        seconds=seconds,
        ends=dict(team.ends),
    )


def command(url: str, folder: Path, jobs: int) -> list[str]:
    start = [sys.executable, "-m", "septet", "eval", str(folder / "suite.jsonl"), "--mode", "team", "--json"]
    where = ["-t", str(folder / "team.yaml"), "-m", f"url:{url}#oracle", "--out", str(folder / "out.jsonl")]
    return [*start, *where, "--jobs", str(jobs)]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "SEPTET_HOME": str(folder / "home")}


async def killed(words: Sequence[str], folder: Path, when: anyio.Event) -> None:
    """The program until then; kill -9."""
    with (folder / "killed.txt").open("ab") as quiet:
        process = await anyio.open_process(words, env=environment(folder), stdout=quiet, stderr=quiet)
    async with process, anyio.create_task_group() as group:

        async def to_the_end() -> None:
            await process.wait()
            group.cancel_scope.cancel()

        group.start_soon(to_the_end)
        await when.wait()
        process.kill()


async def run_all(given: argparse.Namespace) -> list[Row]:
    tasks = sample_tasks(read_suite(given.suite), given.tasks, given.seed)
    out = Path(given.out) if given.out else None
    known = out.read_bytes().splitlines() if out and out.exists() else []
    rows = [msgspec.json.decode(line, type=Row) for line in known if line.endswith(b"}")]
    there = {(row.way, row.fault) for row in rows}
    pairs: list[tuple[str, Fault]] = [
        (way, fault) for fault in FAULTS for way in WAYS if (way, fault) not in there
    ]
    limiter = anyio.CapacityLimiter(given.together)

    async def one(way: str, fault: Fault, folder: Path) -> None:
        async with limiter:
            row = await run_suite(tasks, way, fault, folder, given.jobs)
        rows.append(row)
        sys.stderr.write(f"{row}\n")
        if out:
            with out.open("ab") as file:
                file.write(msgspec.json.encode(row) + b"\n")

    place = Path(tempfile.mkdtemp(prefix="oracle-", dir=given.keep))
    async with anyio.create_task_group() as group:
        for way, fault in pairs:
            if way in given.ways.split(",") and fault in given.faults.split(","):
                group.start_soon(one, way, fault, place / f"{way}-{fault}")
    if not given.keep:
        shutil.rmtree(place)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite")
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--jobs", type=int, default=2, help="tasks at once")
    parser.add_argument("--together", type=int, default=1, help="ways and faults at once")
    parser.add_argument("--keep", help="an existing folder in which logs and results stay")
    parser.add_argument("--out", help="a file of rows")
    rows = anyio.run(run_all, parser.parse_args())
    rows.sort(key=lambda row: (FAULTS.index(row.fault), WAYS.index(row.way)))
    sys.stdout.write("\n".join([HEADER, *map(str, rows), ""]))
    return 0 if all(row.is_whole for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
