"""`bench/outcome.py`: everybody is counted by its proxy, and judged by the hidden tests."""

import os
import sys
from pathlib import Path

import anyio
import pytest
from evaluation.oracle import oracle

from septet.evaluation.suites import read_suite
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).absolute().parents[2]
WRONG = {"median": "def middle(numbers):\n    return 0\n"}


async def compare(url: str, folder: Path) -> str:
    suite = folder / "one.jsonl"
    task = next(task for task in read_suite("small") if task.id == "median")
    suite.write_text(
        SUITE.read_text().splitlines()[[one.id for one in read_suite("small")].index(task.id)] + "\n"
    )
    command = [sys.executable, str(ROOT / "bench" / "outcome.py"), str(suite), f"{url}#oracle"]
    names = ["--who", "single,best-of-8,septet", "--out", str(folder / "out.jsonl")]
    environment = {**os.environ, "SEPTET_HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder)}
    done = await anyio.run_process([*command, *names], env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


SUITE = ROOT / "src" / "septet" / "evaluation" / "small.jsonl"


@pytest.mark.parametrize(("wrong", "right"), [({}, 1), (WRONG, 0)])
async def test_each_is_counted_and_judged_alike(wrong: dict[str, str], right: int, tmp_path: Path) -> None:
    async with serve_mock(oracle(read_suite("small"), wrong)) as server:
        printed = await compare(server.url, tmp_path)
        asked = len(server.seen)
        assert await compare(server.url, tmp_path) == printed
        assert len(server.seen) == asked, "what is known is not done again"
    rows = [line.split(" | ") for line in printed.splitlines() if " of 1 | " in line]
    assert [(row[0], row[1]) for row in rows] == [
        ("| single", f"{right} of 1"),
        ("| best-of-8", f"{right} of 1"),
        ("| septet", f"{right} of 1"),
    ]
    answers = [float(row[3]) for row in rows]
    assert answers[:2] == [1, 9]
    assert sum(answers) == asked
