"""What every sandbox promises, run over every rung of this machine; its limits are in test_limits.py."""

import hashlib
import os
import sys
import uuid
from pathlib import Path

import anyio
import pytest
from sandboxes.jobs import python, tight
from sandboxes.processes import processes_with

from septet.domain.files import FileChange
from septet.domain.pytest_report import PYTEST
from septet.domain.runs import MEBIBYTE, Job, Limits, RunResult
from septet.errors import BadUsage
from septet.ports import Sandbox
from septet.sandboxes.interpreters import Interpreters

pytestmark = pytest.mark.anyio


async def test_exit_code_and_both_streams_come_back(sandbox: Sandbox, workspace: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    result = await sandbox.run(python(workspace, code))
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert result.stopped_by is None
    assert not result.succeeded
    assert 0 < result.seconds < 20
    assert result.rung


async def test_words_on_stderr_do_not_make_a_failure(sandbox: Sandbox, workspace: Path) -> None:
    result = await sandbox.run(python(workspace, "import sys; print('Error!', file=sys.stderr)"))
    assert result.succeeded


async def test_a_signal_is_told_as_a_shell_tells_it(sandbox: Sandbox, workspace: Path) -> None:
    result = await sandbox.run(python(workspace, "import os; os.kill(os.getpid(), 11)"))
    assert result.exit_code == 128 + 11


async def test_a_missing_command_is_the_programs_failure(sandbox: Sandbox, workspace: Path) -> None:
    result = await sandbox.run(Job(command=("no-such-program",), workspace=str(workspace)))
    assert result.exit_code == 127
    assert "no-such-program" in result.stderr


async def test_a_missing_workspace_is_the_persons_to_fix(sandbox: Sandbox, workspace: Path) -> None:
    with pytest.raises(BadUsage, match="not a folder"):
        await sandbox.run(Job(command=("true",), workspace=str(workspace / "absent")))


async def test_the_workspace_is_the_working_folder_and_writable(sandbox: Sandbox, workspace: Path) -> None:
    await sandbox.run(python(workspace, "import os; open('where', 'w').write(os.getcwd())"))
    assert (workspace / "where").read_text() == str(workspace)


async def test_what_the_program_makes_belongs_to_the_person(sandbox: Sandbox, workspace: Path) -> None:
    """Also in a workspace that nobody else may enter."""
    await anyio.Path(workspace).chmod(0o700)
    code = (
        "import os; os.makedirs('made', 0o700); open('made/file', 'w').write('x'); os.chmod('made/file', 0)"
    )
    result = await sandbox.run(python(workspace, code))
    assert result.succeeded, result
    for made in (workspace / "made", workspace / "made" / "file"):
        assert made.stat().st_uid == os.getuid()
    (workspace / "made" / "file").unlink()


async def test_stdin_is_what_the_job_says_then_ends(sandbox: Sandbox, workspace: Path) -> None:
    content = b"x" * 300_000
    result = await sandbox.run(python(workspace, "import sys; print(len(sys.stdin.read()))", stdin=content))
    assert result.stdout == "300000\n"


async def test_a_program_that_asks_for_input_gets_an_end_of_file(sandbox: Sandbox, workspace: Path) -> None:
    result = await sandbox.run(python(workspace, "input('name? ')"))
    assert result.exit_code == 1
    assert "EOFError" in result.stderr


async def test_stdin_that_nobody_reads_does_no_harm(sandbox: Sandbox, workspace: Path) -> None:
    result = await sandbox.run(python(workspace, "print('done')", stdin=b"x" * 300_000))
    assert result.stdout == "done\n"


async def test_output_is_heard_while_the_program_runs(sandbox: Sandbox, workspace: Path) -> None:
    """The program waits for an answer to what it said: it can only end if somebody heard it in time."""
    code = "import os, time\nprint('ready')\nwhile not os.path.exists('answer'): time.sleep(0.01)"

    heard: list[bytes] = []

    def listen(stream: str, piece: bytes) -> None:
        assert stream == "stdout"
        heard.append(piece)
        (workspace / "answer").touch()

    assert (await sandbox.run(python(workspace, code), listen)).succeeded
    assert b"".join(heard) == b"ready\n"


async def test_any_bytes_become_text(sandbox: Sandbox, workspace: Path) -> None:
    code = r"import sys; sys.stdout.buffer.write(b'a\x00b\xff\xfec\xc3\xa9\n')"
    result = await sandbox.run(python(workspace, code))
    assert result.stdout == "a\u2400b\ufffd\ufffdc\u00e9\n"


async def test_long_output_keeps_its_head_and_its_tail(sandbox: Sandbox, workspace: Path) -> None:
    code = "print('first'); print('x' * 500_000); print('last')"
    result = await sandbox.run(python(workspace, code, tight(kept_output=1000)))
    assert result.stdout.startswith("first\n")
    assert result.stdout.endswith("last\n")
    assert "bytes left out" in result.stdout
    assert len(result.stdout) < 1100


async def test_a_line_of_a_hundred_megabytes_is_taken_like_any_other(
    sandbox: Sandbox, workspace: Path
) -> None:
    code = (
        "import sys\nfor _ in range(100): sys.stdout.buffer.write('é'.encode() * (1 << 19))\n"
        "sys.stdout.buffer.flush(); sys.stdout.buffer.write(b'\\xff the end')"
    )
    result = await sandbox.run(python(workspace, code, tight(output=200 * MEBIBYTE)))
    assert result.succeeded, result.stopped_by
    assert result.stdout.startswith("éé")
    assert result.stdout.endswith("é\ufffd the end")
    assert len(result.stdout.encode()) < Limits().kept_output + 100


async def test_changes_are_told_with_their_hashes(sandbox: Sandbox, workspace: Path) -> None:
    for name in ("kept", "changed", "deleted"):
        (workspace / name).write_text(name)
    code = (
        "import os; os.makedirs('a/b'); open('a/b/new', 'w').write('new');"
        "open('changed', 'w').write('CHANGED'); os.remove('deleted')"
    )
    result = await sandbox.run(python(workspace, code))
    assert result.changes == (
        FileChange(path="a/b/new", kind="new", size=3, sha256=hashlib.sha256(b"new").hexdigest()),
        FileChange(path="changed", kind="changed", size=7, sha256=hashlib.sha256(b"CHANGED").hexdigest()),
        FileChange(path="deleted", kind="deleted"),
    )


async def test_python_and_pytest_leave_no_caches(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "thing.py").write_text("def double(x):\n    return 2 * x\n")
    (workspace / "test_thing.py").write_text(
        "from thing import double\n\ndef test():\n    assert double(2) == 4\n"
    )
    job = Job(command=PYTEST, workspace=str(workspace))
    result = await sandbox.run(Interpreters(workspace.parent / "cache").prepare(job))
    assert result.succeeded, result
    assert "1 passed" in result.stdout
    assert result.changes == ()


async def test_the_environment_is_an_allow_list(
    sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEPTET_TEST_SECRET", "do not tell")
    code = (
        "import os; print(dict(os.environ)); print(open('/proc/1/environ').read() if os.getpid() < 9 else '')"
    )
    job = Job(command=("python", "-c", code), workspace=str(workspace), environment={"GREETING": "hello"})
    result = await sandbox.run(job)
    assert "'GREETING': 'hello'" in result.stdout
    assert "do not tell" not in result.stdout + result.stderr
    assert f"'HOME': '{Path.home()}'" not in result.stdout


DAEMON = (
    "import os, sys, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        os.execvp('python', ['python', '-c', 'import time; time.sleep(600)', {mark!r}])\n"
    "    os._exit(0)\n"
    "while not os.path.exists('go'):\n"
    "    time.sleep(0.01); open('go', 'w')\n"
)


async def test_a_daemon_does_not_outlive_the_run(sandbox: Sandbox, workspace: Path) -> None:
    mark = uuid.uuid4().hex
    result = await sandbox.run(python(workspace, DAEMON.format(mark=mark)))
    assert result.exit_code == 0, result
    assert processes_with(mark) == []


async def test_a_cancelled_run_leaves_nobody(sandbox: Sandbox, workspace: Path) -> None:
    mark = uuid.uuid4().hex
    code = (
        "import subprocess, sys; print('up');"
        f"subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)', {mark!r}])"
    )
    async with anyio.create_task_group() as group:
        heard = anyio.Event()

        def listen(stream: str, piece: bytes) -> None:
            heard.set()

        group.start_soon(sandbox.run, python(workspace, code), listen)
        with anyio.fail_after(120):
            await heard.wait()
        group.cancel_scope.cancel()
    assert processes_with(mark) == []


async def test_runs_at_the_same_time_do_not_mix(sandbox: Sandbox, tmp_path: Path) -> None:
    results: dict[int, RunResult] = {}

    async def one(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        results[number] = await sandbox.run(
            python(folder, f"print({number}); open('n', 'w').write('{number}')")
        )

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(one, number)
    assert {number: result.stdout for number, result in results.items()} == {n: f"{n}\n" for n in range(4)}
    assert [(tmp_path / str(n) / "n").read_text() for n in range(4)] == list("0123")


async def test_the_interpreter_is_of_this_version_and_has_an_environment_of_its_own(
    sandbox: Sandbox, workspace: Path
) -> None:
    code = "import sys; print(sys.version_info[:3], sys.base_prefix, sys.prefix)"
    version, base, prefix = (await sandbox.run(python(workspace, code))).stdout.rsplit(maxsplit=2)
    assert (version, base) == (str(sys.version_info[:3]), sys.base_prefix)
    assert prefix not in (sys.prefix, base)
