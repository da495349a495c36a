"""Ordinary programs work in a sandbox as they do outside of it."""

import shutil
from pathlib import Path

import pytest
from sandboxes.benign_programs import PROGRAMS, WITH_TOOLS
from sandboxes.rungs import BY_HAND, NOT_WORKING, RUNGS, expect

from septet.domain.runs import Job, Limits
from septet.ports import Sandbox

pytestmark = pytest.mark.anyio


async def assert_fine(sandbox: Sandbox, workspace: Path, code: str) -> None:
    (workspace / "program.py").write_text(f"{code}\nif __name__ == '__main__': print('fine')\n")
    job = Job(command=("python", "program.py"), workspace=str(workspace), limits=Limits(seconds=50))
    result = await sandbox.run(job)
    assert result.succeeded, result
    assert result.stdout.endswith("fine\n")


@pytest.mark.parametrize("rung", BY_HAND)
@pytest.mark.parametrize("name", list(PROGRAMS))
async def test_it_works(request: pytest.FixtureRequest, rung: str, name: str, tmp_path: Path) -> None:
    expect(request, rung, name, NOT_WORKING)
    await assert_fine(RUNGS[rung](), tmp_path, PROGRAMS[name])


@pytest.mark.parametrize("rung", BY_HAND)
@pytest.mark.parametrize("name", list(WITH_TOOLS))
async def test_it_works_with_tools(
    request: pytest.FixtureRequest, rung: str, name: str, tmp_path: Path
) -> None:
    expect(request, rung, name, NOT_WORKING)
    tool, code = WITH_TOOLS[name]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed here")
    await assert_fine(RUNGS[rung](), tmp_path, code)


def test_there_are_enough_of_them() -> None:
    assert len(PROGRAMS) >= 30
