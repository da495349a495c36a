"""How a run is judged when it has ended: by its files, its last words and its code."""

from pathlib import Path

import pytest

from septet.domain.runs import Job, Limits
from septet.errors import SandboxFailed
from septet.sandboxes import runs
from septet.sandboxes.process import RunMonitor
from septet.sandboxes.rungs import bubblewrap
from septet.sandboxes.runs import WorkspaceDisk
from septet.sandboxes.survey import Survey, survey

LIMITS = Limits(disk=1000)


def monitor(stderr: bytes = b"") -> RunMonitor:
    made = RunMonitor.of(LIMITS, None)
    made.add_output("stderr", stderr)
    return made


def disk(folder: Path) -> WorkspaceDisk:
    return WorkspaceDisk(folder, survey(folder), Job(command=("x",), workspace=str(folder), limits=LIMITS))


def grown(by: int) -> Survey:
    return Survey({}, by, 0)


@pytest.mark.parametrize(("written", "exceeded"), [(4000, False), (4001, True)])
def test_so_many_bytes_may_be_written_although_they_are_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int, exceeded: bool
) -> None:
    monkeypatch.setattr(runs, "bytes_written", {(1,): written}.get)
    assert disk(tmp_path).exceeds_limit((1,)) is exceeded


def test_what_is_seen_counts_too(tmp_path: Path) -> None:
    before = disk(tmp_path)
    assert not before.exceeds_limit(())
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    assert before.exceeds_limit(())
    after, changes = before.compare()
    assert ([change.path for change in changes], before.is_too_big(after)) == (["a"], True)


@pytest.mark.parametrize(
    ("code", "stderr", "space", "group", "limit"),
    [
        (0, b"", 0, None, None),
        (0, b"", 1001, None, "disk"),
        (1, b"", 1000, None, None),
        (1, b"MemoryError", 0, None, "memory"),
        (1, b"", 0, "processes", "processes"),
        (0, b"", 0, "processes", None),
        (1, b"MemoryError", 0, "processes", "memory"),
    ],
)
def test_the_limit_that_ended_a_run(
    tmp_path: Path, code: int, stderr: bytes, space: int, group: str | None, limit: str | None
) -> None:
    seen = monitor(stderr)
    seen.group_limit = group  # pyright: ignore[reportAttributeAccessIssue]  # one of the limits
    found = runs._limit_reached(code, seen, grown(space), disk(tmp_path))  # pyright: ignore[reportPrivateUsage]  # the judgement
    assert found == limit


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3, 3), (-9, 137), (-15, 143)])
def test_a_signal_is_told_as_a_shell_does(status: int, code: int) -> None:
    assert runs._exit_code(status) == code  # pyright: ignore[reportPrivateUsage]  # its rule


def test_a_program_that_does_not_exist_is_no_failure_of_the_sandbox() -> None:
    explain = bubblewrap._explain_failure  # pyright: ignore[reportPrivateUsage]  # what bubblewrap's words mean
    missing = monitor(b"bwrap: execvp nobody: No such file or directory\n")
    explain(b'{"child-pid": 5}\n', missing)
    assert missing.exit_code == 127
    ran = monitor(b"bwrap: execvp nobody: No such file or directory\n")
    explain(b'{"child-pid": 5}\n{"exit-code": 1}\n', ran)
    assert ran.exit_code is None
    with pytest.raises(SandboxFailed, match=r"could not start the program \(bwrap: no mount\)"):
        explain(b"", monitor(b"first\nbwrap: no mount\n"))
