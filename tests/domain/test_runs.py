"""A run as a job and as a result."""

import pytest
from msgspec.structs import replace

from septet.domain.runs import Cell, Job, Mode, ModeName, RunResult, Screen, Server, mode_name


def test_a_job_is_where_its_workspace_is_mounted_or_else_is() -> None:
    job = Job(command=("true",), workspace="/w")
    assert job.place == "/w"
    assert replace(job, mounted_at="/m").place == "/m"


@pytest.mark.parametrize(
    ("mode", "name"), [(Screen(), "screen"), (Server(), "server"), (Cell(code=""), "cell"), (None, "")]
)
def test_each_mode_has_its_name_in_the_log(mode: Mode | None, name: ModeName) -> None:
    assert mode_name(mode) == name


def test_a_run_succeeds_if_it_ends_by_itself_with_0() -> None:
    good, bad = RunResult(exit_code=0), RunResult(exit_code=3)
    stopped = RunResult(exit_code=0, stopped_by="time")
    assert [one.succeeded for one in (good, bad, stopped)] == [True, False, False]
    assert [one.ending for one in (good, bad, stopped)] == ["exit 0", "exit 3", "stopped by the time limit"]
