"""The warm path gives the same results as a fresh sandbox, and each spare is used once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from polling import poll

from septet.domain.runs import Job, Limits, RunResult
from septet.sandboxes.job_runner import WarmRunner, open_warm_runner
from septet.sandboxes.rungs.bubblewrap import Bubblewrap

pytestmark = pytest.mark.anyio

MAIN = """
import sys, multiprocessing
def work(n): return n + 1
if __name__ == "__main__":
    print(__name__, __file__, sys.argv, sys.path[0], sorted(globals()))
    with multiprocessing.get_context("spawn").Pool(1) as pool: print(pool.map(work, [1]))
"""

COMMANDS = {
    "text": (
        "python",
        "-c",
        "import sys; print(sys.argv, sys.path[0], __name__, sorted(globals()))",
        "a",
        "b",
    ),
    "file": ("python", "main.py", "--flag", "value"),
    "module": ("python3", "-m", "package.tool", "x"),
    "failure": ("python", "fails.py"),
    "failing text": ("python", "-c", "def f(): raise ValueError('x')\nf()"),
    "exit code": ("python", "-c", "raise SystemExit(7)"),
    "exit message": ("python", "-c", "raise SystemExit('sorry')"),
    "no such file": ("python", "absent.py"),
    "no such module": ("python", "-m", "absent"),
    "broken syntax": ("python", "broken.py"),
    "threads and atexit": ("python", "late.py"),
    "tests": ("python", "-m", "pytest", "-q", "--no-header", "-p", "no:terminal", "test_it.py"),
}


def furnished(workspace: Path) -> Path:
    (workspace / "main.py").write_text(MAIN)
    (workspace / "fails.py").write_text("def inner():\n    return 1 / 0\n\ninner()\n")
    (workspace / "broken.py").write_text("print('x'\n")
    (workspace / "test_it.py").write_text("def test():\n    assert 1 + 1 == 2\n")
    (workspace / "late.py").write_text(
        "import atexit, threading, time\natexit.register(print, 'bye')\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start()\n"
    )
    (workspace / "package").mkdir()
    (workspace / "package" / "tool.py").write_text("import sys\nprint(sys.argv, sys.path[0], __package__)\n")
    return workspace


@asynccontextmanager
async def ready(workspace: Path, limits: Limits | None = None) -> AsyncGenerator[WarmRunner]:
    """A warm sandbox that has a spare for the workspace."""
    async with open_warm_runner(Bubblewrap.detect()) as warm:
        await warm.run(Job(command=("python", "-c", ""), workspace=str(workspace), limits=limits or Limits()))
        await until_spare(warm)
        yield warm


async def until_spare(warm: WarmRunner) -> None:
    async def spares() -> int:
        return len(warm.spares)

    await poll(spares)


def seen(result: RunResult) -> tuple[object, ...]:
    return (result.exit_code, result.stdout, result.stderr, result.stopped_by, result.changes)


@pytest.mark.parametrize("name", list(COMMANDS))
async def test_a_program_sees_no_difference(name: str, tmp_path: Path) -> None:
    furnished(tmp_path)
    job = Job(command=COMMANDS[name], workspace=str(tmp_path))
    cold = await Bubblewrap.detect().run(job)
    async with ready(tmp_path) as warm:
        (spare,) = warm.spares.values()
        result = await warm.run(job)
        assert spare.control == -1, "the spare was not used"
    assert seen(result) == seen(cold)


async def test_stdin_and_changes_work(tmp_path: Path) -> None:
    async with ready(tmp_path) as warm:
        code = "import sys; open('copy', 'w').write(sys.stdin.read())"
        result = await warm.run(Job(command=("python", "-c", code), workspace=str(tmp_path), stdin=b"words"))
    assert (tmp_path / "copy").read_text() == "words"
    assert [change.path for change in result.changes] == ["copy"]


async def test_nothing_is_left_from_one_program_to_the_next(tmp_path: Path) -> None:
    async with ready(tmp_path) as warm:
        await warm.run(Job(command=("python", "-c", "open('/tmp/left', 'w')"), workspace=str(tmp_path)))
        await until_spare(warm)
        code = "import os; print(os.listdir('/tmp'))"
        result = await warm.run(Job(command=("python", "-c", code), workspace=str(tmp_path)))
    assert "left" not in result.stdout


async def test_limits_hold(tmp_path: Path) -> None:
    limits = Limits(seconds=1.0)
    async with ready(tmp_path, limits) as warm:
        job = Job(command=("python", "-c", "while True: pass"), workspace=str(tmp_path), limits=limits)
        assert (await warm.run(job)).stopped_by == "time"


async def test_another_kind_of_job_gets_a_sandbox_of_its_own(tmp_path: Path) -> None:
    async with ready(tmp_path) as warm:
        code = "import os; print(os.environ['NAME'])"
        job = Job(command=("python", "-c", code), workspace=str(tmp_path), environment={"NAME": "value"})
        assert (await warm.run(job)).stdout == "value\n"
        assert (await warm.run(Job(command=("echo", "hi"), workspace=str(tmp_path)))).stdout == "hi\n"
        job = Job(command=("python", "-O", "-c", "print(__debug__)"), workspace=str(tmp_path))
        assert (await warm.run(job)).stdout == "False\n"
