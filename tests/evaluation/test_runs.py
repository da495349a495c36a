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

from septet.domain.runs import RunResult
from septet.domain.teams import RoleSpec, TeamSpec
from septet.errors import BadUsage
from septet.evaluation.report import Report, TaskResult
from septet.evaluation.runs import (
    Head,
    ResultFile,
    chat_name,
    coder_model,
    defines,
    failure_text,
    files_in,
    goal_text,
    judge,
    read_results,
)
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
        assert team.replies == 2 * 8
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


def test_results_are_called_after_what_they_are_of() -> None:
    assert Head(suite="a b/c", model="openai/x:1", team="t.yaml").file_name == "a-b-c-openai-x-1-t.yaml.jsonl"
    assert Head(suite="small", model="", team="iterate").file_name == "small-own-iterate.jsonl"


def test_a_result_that_a_kill_has_cut_is_not_read(tmp_path: Path) -> None:
    path, head = tmp_path / "results.jsonl", Head(suite="a", model="m", team="t")
    ResultFile(path, head).add(TaskResult(task="one", mode="single", passed=True))
    with path.open("ab") as file:
        file.write(b'{"task": "two", "mode": "sing')
    found = ResultFile(path, head)
    assert [one.task for one in found.results] == ["one"] == [one.task for one in read_results(path)]
    task = EvalTask(id="one", goal="g", tests={})
    assert found.has(task, "single")
    assert not found.has(task, "team")
    assert not found.has(replace(task, id="two"), "single")


GIVEN = EvalTask(id="t", goal="Mend b.py.", tests={}, files={"a.py": "a\n", "b.py": "b\n"})


@pytest.mark.parametrize(
    ("task", "shown"),
    [
        (GIVEN, ["b.py"]),
        (replace(GIVEN, goal="Mend it."), ["a.py", "b.py"]),
        (replace(GIVEN, files={}), []),
        (replace(GIVEN, goal="Mend it.", files={"a.py": "a" * 59_999, "b.py": "b"}), ["a.py"]),
        (replace(GIVEN, goal="Mend it.", files={"a.py": "a" * 60_000, "b.py": "b"}), ["b.py"]),
    ],
)
def test_an_answer_is_asked_for_with_the_files_that_fit(task: EvalTask, shown: list[str]) -> None:
    files = [f"{path}:\n```python\n{task.files[path]}```" for path in shown]
    assert goal_text(task) == "\n\n".join([task.goal, *files])


def test_a_single_answer_comes_from_the_coders_model() -> None:
    team = TeamSpec(
        name="t",
        members=(
            RoleSpec(name="planner", role="planner", model=("big",)),
            RoleSpec(name="coder", role="coder", model=("small", "other")),
        ),
    )
    assert coder_model(team) == ("small", "other")
    assert coder_model(replace(team, members=team.members[:1])) == ("big",)


BLOCK = "```python\ndef inc(n):\n    return n + 1\n```\n"


def test_the_files_of_an_answer_are_over_what_was_given() -> None:
    task = EvalTask(id="t", goal="Mend inc.", tests={}, files={"a.py": "def inc(n): ...\n"})
    assert files_in(task, BLOCK) == ({"a.py": "def inc(n):\n    return n + 1\n"}, "")
    two = replace(task, files={**task.files, "b.py": "b\n"})
    assert files_in(two, f"a.py\n{BLOCK}") == ({"a.py": "def inc(n):\n    return n + 1\n", "b.py": "b\n"}, "")
    assert files_in(task, "I cannot.") == ({}, "no files")


@pytest.mark.parametrize("entry", ["inc", ""])
def test_an_answer_without_given_files_is_the_module(entry: str) -> None:
    task = EvalTask(id="t", goal="Write inc(n), which adds one.", tests={}, entry=entry)
    assert files_in(task, f"Here it is:\n{BLOCK}") == ({"solution.py": "def inc(n):\n    return n + 1\n"}, "")
    files, cause = files_in(task, "I cannot.")
    assert (files, bool(cause)) == ({}, True)


@pytest.mark.parametrize(
    ("text", "is_defined"),
    [
        ("def inc(n): ...", True),
        ("async def inc(n): ...", True),
        ("class inc: ...", True),
        ("inc = len", True),
        ("a = inc = len", True),
        ("inc.a = 1", False),
        ("if True:\n    def inc(n): ...", False),
        ("def other(n): ...", False),
        ("def inc(", False),
        ("inc\0", False),
    ],
)
def test_a_name_is_defined_at_the_top_of_a_module(text: str, is_defined: bool) -> None:
    assert defines(text, "inc") == is_defined


def test_a_chat_is_called_after_its_task_and_the_results() -> None:
    task = EvalTask(id="-Two Fer/" + "x" * 40, goal="", tests={})
    found = chat_name(Path("/results.jsonl"), task)
    assert found == f"eval-two-fer-{'x' * 22}-{found[-8:]}"
    assert found == chat_name(Path("/results.jsonl"), task)
    assert found != chat_name(Path("/other.jsonl"), task)
    assert found[-8:] != chat_name(Path("/results.jsonl"), replace(task, id=f"{task.id}y"))[-8:]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (RunResult(exit_code=1, stopped_by="time"), "stopped by the time limit"),
        (RunResult(exit_code=2, stdout="one\ntwo\n\n"), "no test ran: two"),
        (RunResult(exit_code=2, stdout="one\n", stderr="why\n"), "no test ran: why"),
        (RunResult(exit_code=2), "no test ran: nothing was printed"),
    ],
)
def test_why_hidden_tests_did_not_pass_is_said(result: RunResult, text: str) -> None:
    assert failure_text(result) == text
