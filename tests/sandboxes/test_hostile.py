"""Programs that try to get out, to stay, or to take the machine down: none may, on any rung that confines."""

import hashlib
import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from sandboxes.canaries import Canaries, canaries, mode_bits
from sandboxes.rungs import BY_HAND, LET_THROUGH, RUNGS, expect

from septet.domain.runs import Job, Limits, RunResult
from septet.ports import Sandbox

pytestmark = pytest.mark.anyio

PROGRAMS = sorted((Path(__file__).parent / "hostile").glob("*.py"))
ENDS_WITHIN = 60


@dataclass(frozen=True, slots=True)
class Expected:
    """What a program's first lines say: the limits it runs under and how it must end."""

    limits: Limits
    bounds: tuple[str, ...]
    exit_code: int | None

    @classmethod
    def of(cls, text: str) -> "Expected":
        bounds = {name: float(value) for name, value in re.findall(r"(\w+)=(\d+)", _line(text, "limits"))}
        stopped = _line(text, "stopped by")
        code = _line(text, "exit code")
        return cls(
            Limits(**{"seconds": 20.0, **{n: v if "sec" in n else int(v) for n, v in bounds.items()}}),  # pyright: ignore[reportArgumentType]
            tuple(stopped.split(", ")) if stopped else (),
            int(code) if code else None,
        )


def _line(text: str, name: str) -> str:
    found = re.search(rf"^# {name}: (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def made_ready(folder: Path, program: Path) -> tuple[Path, Path]:
    outside, workspace = folder / "outside", folder / "work"
    outside.mkdir()
    workspace.mkdir()
    shutil.copy(program, workspace / "program.py")
    return outside, workspace


async def run(sandbox: Sandbox, world: Canaries, limits: Limits) -> RunResult:
    job = Job(
        command=("python", "program.py"),
        workspace=str(world.workspace),
        limits=limits,
        environment=world.environment,
    )
    with anyio.fail_after(ENDS_WITHIN):
        return await sandbox.run(job)


@pytest.mark.parametrize("rung", BY_HAND)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
async def test_it_is_held(
    request: pytest.FixtureRequest, rung: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect(request, rung, program.stem, LET_THROUGH)
    sandbox = RUNGS[rung]()
    outside, workspace = made_ready(tmp_path, program)
    expected = Expected.of(program.read_text())
    with canaries(outside, workspace) as world:
        monkeypatch.setenv("SEPTET_CANARY", world.token)
        result = await run(sandbox, world, expected.limits)
        assert world.sung() == []
        assert world.orphans() == []
    assert_nothing_told(result, world.token)
    assert mode_bits(workspace) == []
    if expected.bounds:
        assert str(result.stopped_by) in expected.bounds, result
    if expected.exit_code is not None:
        assert result.exit_code == expected.exit_code, result
    make_removable(workspace)


def assert_nothing_told(result: RunResult, token: str) -> None:
    said = result.stdout + result.stderr
    assert "ESCAPED" not in said, said
    assert token not in said
    assert hashlib.sha256(token.encode()).hexdigest() not in {change.sha256 for change in result.changes}


def make_removable(workspace: Path) -> None:
    workspace.chmod(0o700)
    for _, folders, _, at in os.fwalk(workspace):
        for name in folders:
            if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                os.chmod(name, 0o700, dir_fd=at)


def test_there_are_enough_of_them() -> None:
    assert len(PROGRAMS) >= 60
