"""The demos: no key, no network; the words are scripted, everything else is real."""

import csv
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from cli.commands import Septet
from scenarios.assistant.impressions import clicks, rate, rates

from septet.common.pictures import recognise


@pytest.mark.parametrize(
    ("which", "program", "picture"), [("clock", "clock.py", "clock.png"), ("bars", "bars.py", "bars.svg")]
)
@pytest.mark.torture
def test_a_demo_leaves_a_program_that_runs_and_a_report_with_evidence(
    septet: Septet, tmp_path: Path, which: str, program: str, picture: str
) -> None:
    done = septet("demo", which, "--json", "-C", "made")
    assert done.returncode == 0, done.stderr
    assert "a demo: the members' answers were written beforehand" in done.stderr
    result = msgspec.json.decode(done.stdout.splitlines()[-1])
    assert result["versions"] >= 2
    assert result["evidence"]
    assert all(line["met"] and line["version"] == result["versions"] for line in result["evidence"])
    assert result["reservations"] == [], "somebody else than the coder has shown each requirement"
    assert failed_tests(done.stdout) == [True, False], "the first version has a bug that the runner finds"
    made = tmp_path / "made"
    (made / picture).unlink()
    subprocess.run([sys.executable, program], cwd=made, check=True, capture_output=True)
    assert not recognise((made / picture).read_bytes()).error


def failed_tests(log: str) -> list[bool]:
    """Of every run of the tests with the program, whether it found something."""
    events = [msgspec.json.decode(line) for line in log.splitlines()[:-1]]
    runs = [event["data"] for event in events if event["type"] == "septet.run_finished"]
    return [run["result"]["exit_code"] != 0 for run in runs if run["purpose"] == "tests"]


@pytest.mark.torture
def test_the_clock_survives_a_kill_between_its_second_script_and_the_review(
    septet: Septet, tmp_path: Path
) -> None:
    goal = "Make me a python app that displays the current time on an analog clock face."
    run = ["run", goal, "-m", "scripted:demo/clock", "--yes", "--json", "-C", "w", "-n", "clock"]
    septet.killed(*run, at='"number":2')
    workspace = tmp_path / "w"
    assert not (workspace / "review_v2.txt").exists()
    resumed = septet("resume", "clock")
    assert resumed.returncode == 0, resumed.stderr
    assert "version 1" not in resumed.stderr, "nothing is done again"
    for name in ("MasterPlan.txt", "script_v1.py", "review_v1.txt", "script_v2.py", "review_v2.txt"):
        assert (workspace / name).stat().st_size > 0
    assert (workspace / "script_v2.py").read_text() == (workspace / "clock.py").read_text()
    assert recognise((workspace / "clock.png").read_bytes()).kind == "320×320 PNG"


@pytest.mark.torture
def test_a_broken_project_is_mended_and_the_guilty_one_is_named(septet: Septet, tmp_path: Path) -> None:
    done = septet("demo", "hello", "--json", "-C", "project")
    assert done.returncode == 0, done.stderr
    events = [msgspec.json.decode(line) for line in done.stdout.splitlines()[:-1]]
    decisions = [event["data"] for event in events if event["type"] == "septet.decision_recorded"]
    assert [one["case"] for one in decisions if "case" in one] == ["broken", *["disagreement"] * 2, "green"]
    assert [one["what"] for one in decisions if "case" not in one] == [
        "the code is wrong, by P1",
        "the test is wrong, by P3",
    ]
    ran = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path / "project", check=True, capture_output=True, text=True
    )
    assert ran.stdout == "hello, world\n"
    again = septet("demo", "hello", "-C", "project")
    assert again.returncode == 2
    assert "already contains main.py" in again.stderr


def test_questions_about_a_log_are_answered_with_printed_numbers(septet: Septet, tmp_path: Path) -> None:
    done = septet("demo", "ctr", "--json", "-C", "answers")
    assert done.returncode == 0, done.stderr
    events = [msgspec.json.decode(line) for line in done.stdout.splitlines()[:-1]]
    (refused,) = [event["data"] for event in events if event["type"] == "septet.reply_refused"]
    assert "no program printed 4:" in refused["reason"]
    answer = msgspec.json.decode(done.stdout.splitlines()[-1])["answer"]
    with (septet.home / "demo" / "impressions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9_500
    assert f"{rate(rows)} %" in answer
    assert all(f"{name} {share} %" in answer for name, share in rates(rows, "osName").items())
    for column in ("mm_dma", "site_id"):
        name, count = clicks(rows, column)[0]
        assert f"{name} ({count})" in answer
    assert f"{sum(row['tag'].startswith('v') for row in rows):,} view-throughs" in answer
    assert (tmp_path / "answers" / "hours.svg").read_text().startswith("<svg")


def test_a_pair_finds_the_newest_pull_request(septet: Septet, tmp_path: Path) -> None:
    done = septet("demo", "pull-request", "-C", "made")
    assert (done.returncode, "done, all checks passed" in done.stdout) == (0, True), done.stderr
    assert (tmp_path / "made" / "pr.txt").read_text() == "#43 Hands that move\n"
    assert "KeyError: 'id'" in (tmp_path / "made" / "chat_history.txt").read_text()


@pytest.mark.torture
def test_a_quiet_demo_says_nothing_but_its_result(septet: Septet) -> None:
    done = septet("demo", "hello", "-q")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "done; the coder knew every example of P1 and P2" in done.stdout, (
        "it was told the one that failed twice"
    )
