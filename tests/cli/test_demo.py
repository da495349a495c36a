"""The demos: no key, no network; the words are scripted, everything else is real."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from cli.commands import Septet

from septet.domain.pictures import recognise


@pytest.mark.parametrize(
    ("which", "program", "picture"), [("clock", "clock.py", "clock.png"), ("bars", "bars.py", "bars.svg")]
)
def test_a_demo_leaves_a_program_that_runs_and_a_report_with_evidence(
    septet: Septet, tmp_path: Path, which: str, program: str, picture: str
) -> None:
    done = septet("demo", which, "--json", "-C", "made")
    assert done.returncode == 0, done.stderr
    assert "a rehearsal: the team's words were written beforehand" in done.stderr
    result = msgspec.json.decode(done.stdout.splitlines()[-1])
    assert result["versions"] >= 2
    assert result["evidence"]
    assert all(line["met"] and line["version"] == result["versions"] for line in result["evidence"])
    made = tmp_path / "made"
    (made / picture).unlink()
    subprocess.run([sys.executable, program], cwd=made, check=True, capture_output=True)
    assert not recognise((made / picture).read_bytes()).trouble


def test_the_first_version_has_a_bug_that_the_runner_finds(septet: Septet) -> None:
    log = septet("demo", "clock", "--json").stdout
    events = [msgspec.json.decode(line) for line in log.splitlines()[:-1]]
    runs = [event["data"]["result"] for event in events if event["type"] == "septet.run_finished"]
    tests = [run for run in runs if "short test summary" in run.get("stdout", "")]
    assert [run["exit_code"] != 0 for run in tests if "PASSED" in run["stdout"]] == [True, False]
