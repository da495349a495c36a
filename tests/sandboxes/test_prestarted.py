"""The porter that waits for the next run: already in its cage, used once, by its own thread only."""

import os
from hashlib import sha256
from pathlib import Path

import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint

from septet.domain.runs import Job, Limits
from septet.sandboxes.rungs.bubblewrap import Bubblewrap, PrestartedShell, PrestartedShells, prestart
from septet.sandboxes.users import CURRENT_USER

pytestmark = pytest.mark.anyio


def sandbox_of(own: PrestartedShells) -> Bubblewrap:
    return Bubblewrap(Bubblewrap.detect().program, shells=own)


async def run(sandbox: Bubblewrap, workspace: Path, *command: str, limits: Limits | None = None) -> str:
    result = await sandbox.run(Job(command=command, workspace=str(workspace), limits=limits or Limits()))
    assert result.succeeded, result
    await checkpoint()
    return result.stdout


def taken(own: PrestartedShells) -> PrestartedShell:
    assert own.spare_shell is not None
    return own.spare_shell


async def test_the_next_porter_waits_while_a_program_runs_and_is_used_once(tmp_path: Path) -> None:
    own = PrestartedShells()
    sandbox = sandbox_of(own)
    await run(sandbox, tmp_path, "true")
    first = taken(own)
    assert first.matches(first.user)
    assert await run(sandbox, tmp_path, "echo", "hello") == "hello\n"
    assert taken(own) is not first
    assert first.process.returncode == 0
    own.close()


async def test_a_porter_that_died_is_replaced(tmp_path: Path) -> None:
    own = PrestartedShells()
    own.prestart_next(CURRENT_USER)
    taken(own).process.kill()
    taken(own).process.wait()
    assert await run(sandbox_of(own), tmp_path, "echo", "hello") == "hello\n"
    own.close()


async def test_a_porter_serves_only_the_thread_that_called_it(tmp_path: Path) -> None:
    """Bubblewrap dies with the thread that started it."""
    own = PrestartedShells()
    await to_thread.run_sync(own.prestart_next, CURRENT_USER)
    stranger = taken(own)
    assert not stranger.matches(stranger.user)
    assert await run(sandbox_of(own), tmp_path, "echo", "hello") == "hello\n"
    assert stranger.process.returncode is not None
    own.close()


async def test_a_porter_serves_only_one_identity(tmp_path: Path) -> None:
    """Root's programs are another user in each workspace."""
    own = PrestartedShells()
    sandbox = sandbox_of(own)
    users: list[str] = []
    for name in ("first", "second", "second"):
        (tmp_path / name).mkdir(exist_ok=True)
        assert await run(sandbox, tmp_path / name, "sh", "-c", "touch mine; echo hello") == "hello\n"
        users.append(str(taken(own).user.uid))
    assert users[1] == users[2]
    assert users[0] != users[1] or os.getuid() != 0
    own.close()


async def test_a_porter_that_is_not_needed_leaves_nothing() -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    porter = prestart(CURRENT_USER)
    folders = porter.group.folders
    porter.close()
    assert porter.process.returncode is not None
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    assert not [folder for folder in folders if folder.exists()]


async def test_each_run_has_the_limits_of_its_own_job(tmp_path: Path) -> None:
    """Also where the next one may have more than the one before."""
    own = PrestartedShells()
    sandbox = sandbox_of(own)
    for memory in (64 << 20, 512 << 20, 128 << 20):
        limits = Limits(memory=memory, processes=memory >> 21)
        text = await run(sandbox, tmp_path, "sh", "-c", "ulimit -d", limits=limits)
        assert int(text) == memory >> 10
    own.close()


async def test_options_are_not_on_a_command_line(tmp_path: Path) -> None:
    """The program can read that of the first process of its sandbox; and everybody outside can."""
    command = ("python", "-c", "print(open('/proc/1/cmdline').read()); import os; print(os.environ['TOKEN'])")
    job = Job(command=command, workspace=str(tmp_path), environment={"TOKEN": "not to be told"})
    result = await Bubblewrap.detect().run(job)
    first_process, _, own = result.stdout.rstrip().rpartition("\n")
    assert own == "not to be told"
    assert "bwrap" in first_process
    assert "not to be told" not in first_process
    assert "--bind" not in first_process


async def test_a_long_command_is_told_whole(tmp_path: Path) -> None:
    """Longer than a pipe holds, and with everything that a shell could mistake."""
    words = [f"{number}:{'x' * 1000}\n'\"$(echo)" for number in range(150)]
    code = "import hashlib, sys; print(hashlib.sha256(''.join(sys.argv[1:]).encode()).hexdigest())"
    told = await run(Bubblewrap.detect(), tmp_path, "python", "-c", code, *words)
    assert told.strip() == sha256("".join(words).encode()).hexdigest()
