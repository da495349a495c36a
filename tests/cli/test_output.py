"""`show NAME --output [RUN]`: all that a run said, also what the log holds in a blob only."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from cli.commands import Septet

from septet.cli.output import print_diff

SCRIPT = """
turns:
- role: planner
  say: |
    1. It says a lot
       check: command python loud.py => end
    run: python loud.py
- role: coder
  say: A loud one.
  files:
    loud.py: |
      import sys

      print("x" * 99_000)
      print("middle \\x1b[2J")
      print("y" * 99_000)
      print("end")
      sys.stderr.write("z" * 99_000 + "\\nalso\\n" + "z" * 99_000 + "\\n")
- role: reviewer
  say: "verdict: accept"
"""
SAID = "x" * 99_000 + "\nmiddle \x1b[2J\n" + "y" * 99_000 + "\nend\n"
WARNED = "z" * 99_000 + "\nalso\n" + "z" * 99_000 + "\n"


@pytest.fixture(scope="module")
def septet(tmp_path_factory: pytest.TempPathFactory) -> Septet:
    folder: Path = tmp_path_factory.mktemp("output")
    (folder / "loud.yaml").write_text(SCRIPT)
    septet = Septet(folder / "home")
    built = septet("run", "be loud", "-m", "scripted:loud.yaml", "--yes", "-q", "-n", "loud", "--rounds", "1")
    assert built.returncode == 3, built.stderr
    return septet


@pytest.mark.parametrize("run", [["v1 run"], ["V1 RUN"], ["v1 r"], ["v1 check P1"], []])
@pytest.mark.torture
def test_each_stream_comes_whole_on_its_own(septet: Septet, run: list[str]) -> None:
    shown = septet("show", "loud", "--output", *run)
    assert shown.returncode == 0, shown.stderr
    assert (shown.stdout, shown.stderr) == (SAID, WARNED)


def test_as_one_object(septet: Septet) -> None:
    shown = septet("show", "loud", "--output", "v1 run", "--json")
    told = msgspec.json.decode(shown.stdout, type=dict[str, object])
    assert (told["stdout"], told["stderr"], shown.stderr) == (SAID, WARNED, "")
    assert (told["chat"], told["run"], told["purpose"]) == ("loud", "v1 run", "run")
    assert (told["command"], told["exit_code"], told["stopped_by"]) == ("python loud.py", 0, None)


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        (
            "v9 run",
            "'loud' has no run 'v9 run': it has 'v1 run', 'v1 tests', 'v1 check P1', 'v1 hollow check P1'",
        ),
        (
            "v1",
            "'v1' matches 4 runs of 'loud': use one of 'v1 run', 'v1 tests', 'v1 check P1', 'v1 hollow check P1'",
        ),
    ],
)
def test_a_run_that_is_not_there(septet: Septet, run: str, complaint: str) -> None:
    failed = septet("show", "loud", "--output", run)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == f"septet: {complaint}\n"


def test_show_names_the_runs(septet: Septet) -> None:
    assert (
        "runs: v1 run, v1 tests, v1 check P1, v1 hollow check P1 (septet show loud --output 'v1 run')\n"
        in septet("show", "loud").stdout
    )


def test_a_chat_in_which_nothing_ran(septet: Septet) -> None:
    septet("plan", "be loud", "-m", "scripted:loud.yaml", "--yes", "-q", "-n", "planned")
    failed = septet("show", "planned", "--output")
    assert failed.returncode == 2
    assert failed.stderr == "septet: nothing has run in 'planned' yet: see septet show planned\n"


def test_a_reader_that_has_seen_enough_gets_no_complaint(septet: Septet) -> None:
    words = [sys.executable, "-m", "septet", "show", "loud", "--output"]
    with subprocess.Popen(
        words, env=septet.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as showing:
        assert showing.stdout is not None
        assert showing.stderr is not None
        assert showing.stdout.read(10) == b"x" * 10
        showing.stdout.close()
        complaint = showing.stderr.read().replace(b"z", b"").replace(b"\nalso\n", b"").strip()
        assert complaint == b""


def test_a_terminal_is_not_commanded(septet: Septet) -> None:
    ours, theirs = os.openpty()
    words = [sys.executable, "-m", "septet", "show", "loud", "--output"]
    with subprocess.Popen(words, env=septet.environment, stdout=theirs, stderr=subprocess.DEVNULL):
        os.close(theirs)
        shown = b"".join(iter(lambda: heard(ours), b""))
    os.close(ours)
    assert shown.replace(b"\r\n", b"\n").decode() == SAID.replace("\x1b[2J", "")


def heard(terminal: int) -> bytes:
    """What came; nothing once the other side is closed, which a terminal calls an error."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_diff_on_a_terminal_ends_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    monkeypatch.setenv("TERM", "dumb")
    print_diff("-a\n+b\n")
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue()) == "-a\n+b\n"
