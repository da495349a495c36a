"""The Python that programs run with: their project's own or a plain one, and never Septet's."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from septet.domain.runs import Job, RunResult
from septet.ports import Sandbox
from septet.sandboxes.environment import base_interpreter, make_environment
from septet.sandboxes.interpreters import (
    Interpreters,
    make_modules_folder,
    modules_folder,
    project_environment,
    pytest_folder,
    source_folder,
)
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.rungs.bubblewrap import Bubblewrap

pytestmark = pytest.mark.anyio

OURS = (
    *("septet", "click", "rich", "pydantic", "msgspec", "anyio", "yaml", "starlette"),
    *("hypothesis", "PIL", "matplotlib", "numpy", "mido", "pygments"),
)
IMPORTABLE = """
import importlib, sys
for name in sys.argv[1:]:
    try: print(name, importlib.import_module(name).__file__)
    except ImportError: pass
"""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def job_runner(cache: Path, rung: Sandbox | None = None) -> JobRunner:
    return JobRunner(rung or Bubblewrap.detect(), (Interpreters(cache).prepare,))


async def run(cache: Path, workspace: Path, *command: str, rung: Sandbox | None = None) -> RunResult:
    return await job_runner(cache, rung).run(Job(command=command, workspace=str(workspace)))


async def test_what_is_installed_beside_septet_cannot_be_imported(
    sandbox: Sandbox, cache: Path, workspace: Path
) -> None:
    found = await run(cache, workspace, "python", "-c", IMPORTABLE, *OURS, rung=sandbox)
    assert (found.stdout, found.exit_code) == ("", 0), found.stderr
    assert (await run(cache, workspace, "sh", "-c", "command -v ruff septet uv", rung=sandbox)).stdout == ""


@pytest.mark.parametrize("command", ["python -m pytest -q", "pytest -q", "python3 -m pytest -q test_it.py"])
async def test_pytest_is_there_for_whoever_imports_it(cache: Path, workspace: Path, command: str) -> None:
    (workspace / "test_it.py").write_text(
        "import pytest\n\ndef test_it():\n    assert 1 == pytest.approx(1)\n"
    )
    result = await run(cache, workspace, *command.split())
    assert (result.exit_code, "1 passed" in result.stdout) == (0, True), result


async def test_sources_of_the_project_are_tested_and_not_what_is_installed(
    cache: Path, workspace: Path
) -> None:
    """A project that has the name of something that Septet needs."""
    package = workspace / "src" / "click"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("MINE = True\n")
    (workspace / "tests").mkdir()
    (workspace / "tests" / "test_click.py").write_text(
        "import click\n\ndef test_it():\n    assert click.MINE\n"
    )
    result = await run(cache, workspace, "python", "-m", "pytest", "-q")
    assert result.exit_code == 0, result.stdout
    shown = await run(cache, workspace, "python", "-c", "import click; print(click.__file__)")
    assert shown.stdout == f"{package / '__init__.py'}\n"


async def test_sources_do_not_stand_before_the_standard_library(cache: Path, workspace: Path) -> None:
    (workspace / "src" / "logging").mkdir(parents=True)
    (workspace / "src" / "logging" / "__init__.py").write_text("raise SystemExit('mine')\n")
    result = await run(cache, workspace, "python", "-c", "import logging; print(logging.INFO)")
    assert (result.stdout, result.exit_code) == ("20\n", 0)


def test_a_folder_that_is_itself_a_package_is_no_place_for_packages(tmp_path: Path) -> None:
    assert source_folder(tmp_path) is None
    (tmp_path / "src").mkdir()
    assert source_folder(tmp_path) is None
    (tmp_path / "src" / "one.py").touch()
    assert source_folder(tmp_path) == tmp_path / "src"
    (tmp_path / "src" / "__init__.py").touch()
    assert source_folder(tmp_path) is None


@pytest.fixture
def project(workspace: Path) -> Path:
    """With an environment of its own, as a person makes one, in which something is installed."""
    made = [sys.executable, "-m", "venv", "--without-pip", str(workspace / ".venv")]
    subprocess.run(made, check=True)
    site = next((workspace / ".venv").glob("lib/python3*/site-packages"))
    (site / "rich").mkdir()
    (site / "rich" / "__init__.py").write_text("OF_THE_PROJECT = True\n")
    return workspace


async def test_a_project_runs_with_its_own_environment(cache: Path, project: Path) -> None:
    code = "import rich, sys, pytest; print(rich.OF_THE_PROJECT, sys.prefix)"
    result = await run(cache, project, "python", "-c", code)
    assert result.stdout == f"True {project / '.venv'}\n", result.stderr
    assert (await run(cache, project, "python", "-c", IMPORTABLE, "click", "numpy")).stdout == ""


async def test_a_program_cannot_change_the_environment_that_it_is_tested_with(
    cache: Path, project: Path
) -> None:
    result = await run(cache, project, "touch", ".venv/bin/python4", ".venv/lib/x")
    assert result.exit_code == 1
    assert "Read-only file system" in result.stderr
    moved = await run(cache, project, "mv", ".venv", "venv")
    assert moved.exit_code == 1
    assert (project / ".venv" / "bin" / "python").exists()


async def test_tests_that_run_elsewhere_have_the_environment_of_their_project(
    cache: Path, project: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = ("python", "-c", "import rich; print(rich.OF_THE_PROJECT)")
    job = Job(command=command, workspace=str(elsewhere), home=str(project))
    assert (await job_runner(cache).run(job)).stdout == "True\n"


def test_what_only_looks_like_an_environment_shows_nothing_of_the_machine(tmp_path: Path) -> None:
    """A program can make links: what they lead to is seen only if it is an installation of Python."""
    folder, secret = tmp_path / "project" / ".venv", tmp_path / "home" / "bin"
    (folder / "bin").mkdir(parents=True)
    secret.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"home = {secret}\n")
    link = folder / "bin" / "python"
    for target in (secret, secret / "python3.11", tmp_path / "project" / "python3.11", Path("/bin/sh")):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        assert project_environment(tmp_path / "project") is None
    for fake in (secret / "python3.11", tmp_path / "project" / "python3.11"):
        fake.write_text("#!/bin/sh\n")
        fake.chmod(0o755)
        link.unlink()
        link.symlink_to(fake)
        assert project_environment(tmp_path / "project") is None
    link.unlink()
    link.symlink_to(base_interpreter())
    found = project_environment(tmp_path / "project")
    assert found is not None
    assert not any(path.is_relative_to(tmp_path / "home") for path in found.visible_paths)


def test_pytest_is_laid_out_once_and_two_who_do_so_at_once_agree(tmp_path: Path) -> None:
    first = pytest_folder.__wrapped__(tmp_path / "cache")
    assert pytest_folder.__wrapped__(tmp_path / "cache") == first
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [first.name]
    tops = {path.name for path in first.iterdir() if not path.name.endswith(".dist-info")}
    needed = {"bin", "_pytest", "pytest", "pluggy", "iniconfig", "packaging", "pygments"}
    assert needed <= tops <= needed | {"py.py", "__pycache__"}


def test_an_environment_is_made_without_starting_its_interpreter(tmp_path: Path) -> None:
    make_environment(tmp_path / "made", base_interpreter())
    code = "import sys; print(sys.prefix, sys.base_prefix)"
    shown = subprocess.run(
        [tmp_path / "made" / "bin" / "python", "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == [str(tmp_path / "made"), sys.base_prefix]


def test_runs_that_begin_at_once_share_the_folder_of_modules() -> None:
    before = modules_folder().parent
    shutil.rmtree(modules_folder())
    make_modules_folder.cache_clear()
    together = Barrier(8)

    def ask() -> Path:
        together.wait()
        return modules_folder()

    with ThreadPoolExecutor(8) as pool:
        folders = {one.result() for one in [pool.submit(ask) for _ in range(8)]}
    assert folders == {before / "modules"}
