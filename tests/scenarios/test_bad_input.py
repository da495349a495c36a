"""Bad input: one line with cause and remedy, the right exit code, nothing lost, nothing half-written."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.commands import SMALL, Septet, envelopes
from sampling import sampled

CASES = [
    (["run", ""], 2, "the goal is empty"),
    (["run", "x" * 1_000], 5, "no model was found"),
    (["run", "add", "-m", "scripted:absent.yaml"], 5, "there is no such file"),
    (["run", "add", "-m", "what?"], 5, "is not a model name"),
    (["run", "add", "-m", SMALL, "-t", "absent.yaml"], 5, "there is no such file"),
    (["run", "add", "-m", SMALL, "-t", "nobody"], 5, "there is no team 'nobody'"),
    (["run", "add", "-m", SMALL, "-n", "../up"], 2, "not a valid name"),
    (["run", "add", "-m", SMALL, "-C", "a-file"], 2, "is a file"),
    (["run", "add", "-m", SMALL, "--max-time", "soon"], 2, "is not a time"),
    (["run", "add", "-m", SMALL, "--rounds", "0"], 2, "write a whole number, 1 or more"),
    (["resume"], 2, "no chat to resume"),
    (["resume", "nobody"], 2, "no chat"),
    (["show", "nobody"], 2, "there is no chat 'nobody'"),
    (["export", "nobody"], 2, "there is no chat 'nobody'"),
    (["diff", "nobody"], 2, "there is no chat 'nobody'"),
    (["demo", "nothing"], 2, "WHICH cannot be 'nothing': use bars"),
    (["exprot", "x"], 2, "did you mean 'export'"),
    (["--json", "list"], 2, "options come after the command: septet list"),
    (["--team", "plan", "--yes", "exprot"], 2, "did you mean 'export'"),
    (["--team", "modells", "a clock"], 5, "there is no team 'modells'"),
    (["show"], 2, "NAME is missing"),
    (["show", ""], 2, "the name of a chat is missing"),
    (["demo", "hello", "-C", "a-file"], 2, "is a file"),
    (["demo", "hello", "-C", ""], 2, "is not a folder"),
    (["demo", "hello", "-C", "~nobody-here/x"], 2, "has no home folder here"),
    (["demo", "hello", "-C", "x" * 300], 2, "cannot be used (File name too long)"),
    (["demo", "hello", "-C", "/"], 2, "is too wide for a workspace"),
    (["demo", "hello", "-C", "."], 2, "is too wide for a workspace"),
    (["demo", "-m", "local/x"], 2, "a demo has its own answers and data: leave out --model"),
    (["demo", "--data", "a-file"], 2, "a demo has its own answers and data: leave out --data"),
    (["demo", "--max-cost", "nan"], 2, "'nan' is not an amount"),
    (["demo", "--price", "3"], 2, "'3' is not a price, write IN/OUT as in 0.5/1.5"),
    (
        ["run", "x", "-m", "url:https://example.com/v1#m", "--max-cost", "1", "--yes"],
        2,
        "the price of url:https://example.com/v1#m is unknown: set it with --price IN/OUT",
    ),
    (["demo", "--max-time", "9" * 400], 2, "is not a time"),
    (["demo", "--network", "on,example.org"], 2, "write off, on, or"),
    (["exec", "-C", "x" * 300, "--", "true"], 2, "cannot be used (File name too long)"),
    (["exec", "-C", "", "--", "true"], 2, "is not a folder"),
    (["exec", "--time", "inf", "--", "true"], 2, "'inf' is not an amount"),
    (["exec", "--memory", "99999999999999", "--", "true"], 2, "write a whole number"),
    (["facts", "-C", "~nobody-here"], 2, "has no home folder here"),
    (["project", "p", "add", "-C", ""], 2, "is not a folder"),
    (["exec", "--", ""], 2, "the command is empty"),
    (["exec", "--kernel", "a.py", "b.py"], 2, "--kernel takes one FILE"),
    (["exec", "--kernel", "--as", "screen", "a.py"], 2, "--kernel takes one FILE"),
]


@pytest.mark.parametrize(
    ("args", "code", "complaint"), sampled(CASES, every=4), ids=lambda value: str(value)[:40]
)
def test_a_mistake_is_one_clear_line(septet: Septet, args: list[str], code: int, complaint: str) -> None:
    (septet.home.parent / "a-file").write_text("")
    failed = septet(*args)
    assert failed.returncode == code, failed.stderr
    assert failed.stdout == ""
    assert complaint in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
    assert "Traceback" not in failed.stderr
    assert not septet.home.exists(), "a mistake leaves nothing behind"


def test_a_goal_of_a_megabyte_is_refused(septet: Septet) -> None:
    failed = septet("run", "-", "-m", SMALL, stdin="x" * (1 << 20))
    assert failed.returncode == 2
    assert "1,048,576 characters, 100,000 are the most" in failed.stderr


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_locale_without_our_signs_gets_them_as_json_writes_them(septet: Septet) -> None:
    done = septet("run", "add", "-m", SMALL, "--yes", "-n", "adding", environment=ASCII)
    assert done.returncode == 0, done.stderr
    assert "\\u2713  P1 add(a, b) gives the sum" in done.stdout
    log = ("export", "adding", "--format", "jsonl")
    assert envelopes(septet(*log, environment=ASCII).stdout) == envelopes(septet(*log).stdout)


@pytest.mark.parametrize("where", ["argument", "input"])
def test_what_is_no_text_is_refused(septet: Septet, where: str) -> None:
    goal = os.fsdecode(b"gr\xf6sser")
    with_stdin = where == "input"
    failed = subprocess.run(
        [sys.executable, "-m", "septet", "run", "-" if with_stdin else goal, "-m", SMALL],
        input=os.fsencode(goal) if with_stdin else b"",
        env={**septet.environment, "PYTHONIOENCODING": "utf-8:surrogateescape"},
        capture_output=True,
        check=False,
    )
    assert failed.returncode == 2, failed.stderr
    assert b"UTF-8" in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1


def test_an_unknown_role_in_a_team_file_is_named_with_its_remedy(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("members:\n- role: revewer\n")
    failed = septet("run", "add", "-m", SMALL, "-t", "team.yaml")
    assert failed.returncode == 5
    assert "unknown role 'revewer': did you mean 'reviewer'?" in failed.stderr


def test_a_script_that_runs_dry_leaves_a_chat_that_can_go_on(septet: Septet, tmp_path: Path) -> None:
    script = tmp_path / "short.yaml"
    whole = Path(SMALL.removeprefix("scripted:")).read_text()
    script.write_text(whole[: whole.index("- role: coder\n  expect")])
    failed = septet("run", "add", "-m", "scripted:short.yaml", "--yes", "-n", "adding")
    assert failed.returncode == 5
    assert "has no step 2 of the coder (it has 1)" in failed.stderr
    script.write_text(whole)
    assert septet("resume", "adding", "-q").returncode == 0


@pytest.mark.torture
def test_a_name_can_be_used_once(adding: Septet) -> None:
    again = adding("run", "add", "-m", SMALL, "--yes", "-q", "-n", "adding")
    assert again.returncode == 2
    (line,) = again.stderr.splitlines()
    assert "a chat 'adding' exists already: septet resume adding goes on with it" in line


def test_what_stands_in_the_way_is_said_before_a_model_is_looked_for(adding: Septet) -> None:
    (adding.home.parent / "a-file").write_text("")
    for args, reason in ((["-C", "a-file"], "is a file"), (["-n", "adding"], "exists already")):
        refused = adding("run", "add", *args, "--fetch", environment={"OLLAMA_HOST": "127.0.0.1:9"})
        assert refused.returncode == 2, refused.stderr
        assert reason in refused.stderr


@pytest.mark.parametrize(
    "content", [b"this is no database at all, but long enough to look at it twice" * 20, b""]
)
@pytest.mark.torture
def test_a_file_that_is_no_database_is_left_alone(septet: Septet, content: bytes) -> None:
    septet.home.mkdir()
    (septet.home / "septet.db").write_bytes(content)
    failed = septet("run", "add", "-m", SMALL, "--yes")
    if content:
        assert failed.returncode == 1
        assert len(failed.stderr.strip().splitlines()) <= 2
        assert (septet.home / "septet.db").read_bytes() == content
    else:
        assert failed.returncode == 0, "an empty file is a database that nobody has written to"


def test_a_foreign_database_is_left_alone(septet: Septet) -> None:
    septet.home.mkdir()
    with sqlite3.connect(septet.home / "septet.db") as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = (septet.home / "septet.db").read_bytes()
    failed = septet("list")
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
    assert (septet.home / "septet.db").read_bytes() == before


def test_a_workspace_that_is_not_writable_is_refused(
    septet: Septet, small_disk: Callable[[str], Path]
) -> None:
    failed = septet("run", "add", "-m", SMALL, "-C", str(small_disk("ro")))
    assert failed.returncode == 2
    assert "is not writable: name another folder with -C" in failed.stderr


@pytest.mark.parametrize("size", sampled(["60k", "8k", "120k"], every=3))
def test_a_full_disk_stops_the_chat_and_loses_nothing(
    tmp_path: Path, small_disk: Callable[[str], Path], size: str
) -> None:
    septet = Septet(small_disk(f"size={size}"))
    septet.environment["HOME"] = str(tmp_path)
    failed = septet("run", "add", "-m", SMALL, "--yes", "-n", "adding", "-C", str(tmp_path / "w"))
    assert failed.returncode == 75, failed.stderr
    assert "Traceback" not in failed.stderr
    small_disk("size=50m")
    began = "adding" in septet("list").stdout
    again = ["resume", "adding"] if began else ["run", "add", "-m", SMALL, "--yes", "-C", str(tmp_path / "w")]
    done = septet(*again)
    assert done.returncode == 0, done.stderr
