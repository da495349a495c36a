"""A model that knows the answers reaches all of them, in every way of working and whatever goes wrong on the way."""

import os
from pathlib import Path

import pytest
from evaluation.oracle import FAULTS, Fault
from evaluation.oracle_runs import WAYS, run_suite
from msgspec.structs import replace

from septet.evaluation.suites import read_suite, sample_tasks

pytestmark = pytest.mark.anyio

SHORT: dict[str, Fault] = {
    "iterate": "diff",
    "text": "wrong",
    "small": "prose",
    "autocoder": "fence",
    "pair": "kill",
    "assistant": "diff",
}
MBPP = os.environ.get("SEPTET_MBPP_PLUS", "")


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_that_is_known_is_reached(way: str, tmp_path: Path) -> None:
    tasks = [task for task in read_suite("small") if task.id == "median"]
    row = await run_suite(tasks, way, SHORT[way], tmp_path / "run", jobs=1)
    assert row.is_whole, str(row)


async def test_a_wrong_answer_is_not_taken_for_a_right_one(tmp_path: Path) -> None:
    (task,) = [task for task in read_suite("small") if task.id == "median"]
    wrong = f"def {task.entry}(numbers):\n    return 0\n"
    row = await run_suite([replace(task, solution=wrong)], "pair", "none", tmp_path / "run", jobs=1)
    assert (row.right, row.done) == (0, 0)


@pytest.mark.torture
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_whole_suite_is_reached(way: str, fault: Fault, tmp_path: Path) -> None:
    row = await run_suite(read_suite("small"), way, fault, tmp_path / "run", jobs=os.cpu_count() or 2)
    assert row.is_whole, str(row)


@pytest.mark.torture
@pytest.mark.skipif(not MBPP, reason="SEPTET_MBPP_PLUS names no file")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", WAYS)
async def test_forty_foreign_tasks_are_reached(way: str, fault: Fault, tmp_path: Path) -> None:
    tasks = sample_tasks(read_suite(MBPP), 40, 7)
    row = await run_suite(tasks, way, fault, tmp_path / "run", jobs=os.cpu_count() or 2)
    assert row.is_whole, str(row)
