"""A team beside one answer of its model: judged by hidden tests, resumable, and honest about *done*."""

import os
import sys
from pathlib import Path

import anyio
import msgspec
import pytest
from evaluation.oracle import TEAM, oracle
from evaluation.test_suites import write_broken_program, write_repository_task
from msgspec.structs import replace

from septet.errors import BadUsage
from septet.evaluation.report import Report
from septet.evaluation.runs import Head, ResultFile, judge
from septet.evaluation.suites import EvalTask, read_suite
from septet.sandboxes.interpreters import Interpreters
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.testing.server import MockServer, serve_mock

pytestmark = pytest.mark.anyio

TASKS = [task for task in read_suite("small") if task.id in ("runs", "median")]
WRONG = {"median": "def middle(numbers):\n    return sorted(numbers)[len(numbers) // 2]\n"}
"""Meets the stated example, and every candidate is wrong alike."""


async def evaluate(server: MockServer, folder: Path, *more: str) -> Report:
    (folder / "team.yaml").write_text(TEAM)
    suite = folder / "two.jsonl"
    suite.write_bytes(b"".join(msgspec.json.encode(task) + b"\n" for task in TASKS))
    options = ["-m", f"url:{server.url}#oracle", "-t", str(folder / "team.yaml"), "--unsafe-local", "--json"]
    command = [
        sys.executable,
        "-m",
        "septet",
        "eval",
        str(suite),
        "--out",
        str(folder / "out.jsonl"),
        *options,
        *more,
    ]
    environment = {**os.environ, "SEPTET_HOME": str(folder / "home")}
    done = await anyio.run_process(command, env=environment, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return msgspec.json.decode(done.stdout, type=Report)


async def test_what_is_wrong_and_called_done_is_counted_and_a_second_call_asks_nothing_again(
    tmp_path: Path,
) -> None:
    async with serve_mock(oracle(TASKS, WRONG)) as server:
        first = await evaluate(server, tmp_path, "--mode", "single")
        assert (first.modes["single"].passed, first.modes["single"].tasks) == (1, 2)
        asked = len(server.seen)
        report = await evaluate(server, tmp_path, "--jobs", "2")
        assert report.modes["single"] == first.modes["single"]
        team = report.modes["team"]
        assert (team.passed, team.tasks, team.done, team.wrongly_done) == (1, 2, 2, 1)
        assert team.replies == 2 * 4
        assert report.comparison is not None
        assert report.comparison.only_team == report.comparison.only_single == 0
        sent = b"".join(one.body for one in server.seen)
        assert b"test_hidden" not in sent
        assert asked == 2
        asked = len(server.seen)
        again = await evaluate(
            server,
            tmp_path,
            "--against",
            str(tmp_path / "out.jsonl"),
            "--html",
            str(tmp_path / "report.html"),
        )
        assert again.modes == report.modes
        assert [(one.mode, one.tasks, one.only_here, one.p) for one in again.against] == [
            ("single", 2, 0, 1.0),
            ("team", 2, 0, 1.0),
        ]
        page = (tmp_path / "report.html").read_text()
        assert page.count("<tr><td>median<td>") == 2
        assert "<svg" in page
        assert len(server.seen) == asked


async def test_a_judge_that_cannot_run_says_so(tmp_path: Path) -> None:
    sandbox = JobRunner(UnsafeLocal(), (Interpreters(tmp_path / "cache").prepare,))
    task = EvalTask(id="t", goal="g", tests={"test_hidden.py": "import no_such_module\n"})
    passed, detail = await judge(task, {"solution.py": "x = 1\n"}, sandbox)
    assert not passed
    assert "1 error" in detail or "no_such_module" in detail
    passed, detail = await judge(replace(task, tests={"hidden.txt": ""}), {"solution.py": "x = 1\n"}, sandbox)
    assert not passed
    assert detail.startswith("no test ran")


MENDED = {"pkg/__init__.py": "def inc(n):\n    return n + 1\n"}


async def test_hidden_tests_decide_over_a_repository_and_over_a_broken_program(tmp_path: Path) -> None:
    sandbox = JobRunner(UnsafeLocal(), (Interpreters(tmp_path / "cache").prepare,))
    write_repository_task(tmp_path / "repositories")
    write_broken_program(tmp_path / "programs")
    (repository,) = read_suite(str(tmp_path / "repositories"))
    (program,) = read_suite(str(tmp_path / "programs"))
    assert (await judge(repository, repository.files, sandbox))[0] is False
    assert (await judge(repository, {**repository.files, **MENDED}, sandbox))[0] is True
    patched = {**repository.files, "tests/test_old.py": "def test_other(): ...\n", **MENDED}
    assert (await judge(repository, patched, sandbox))[0] is True, "the result's own tests do not take part"
    assert (await judge(program, program.files, sandbox))[0] is False
    assert (await judge(program, {"inc.py": program.solution}, sandbox))[0] is True


def test_results_of_something_else_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    ResultFile(path, Head(suite="a", model="m", team="t"))
    with pytest.raises(BadUsage, match="something else"):
        ResultFile(path, Head(suite="b", model="m", team="t"))
