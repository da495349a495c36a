"""The menu of projects, on a real terminal."""

import shlex
import shutil
import sys
from collections.abc import Generator

import pytest
from cli.commands import SMALL, Septet
from cli.test_terminal import Terminal

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def terminal(septet: Septet) -> Generator[Terminal]:
    """More than ten projects, one of them finished."""
    assert septet("run", "add two numbers", "-m", SMALL, "--yes", "-q", "-n", "adding").returncode == 0
    for number in range(11):
        assert septet("run", f"goal {number}", "-m", SMALL, "-q", "-n", f"waiting-{number}").returncode == 4
    opened = Terminal(str(septet.home.parent / "tmux"))
    settings = [f"{name}={value}" for name, value in {**septet.environment, "SEPTET_MODEL": SMALL}.items()]
    command = shlex.join(["env", *settings, sys.executable, "-m", "septet"])
    opened.tmux(
        "-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "60", f"{command}; echo exit code $?; cat"
    )
    yield opened
    opened.tmux("kill-server")


def test_run_edit_delete_and_leave(terminal: Terminal, septet: Septet) -> None:
    screen = terminal.wait_for("a number opens a project")
    assert " 12  adding" in screen
    terminal.type("12")
    terminal.wait_for("adding: c continue")
    terminal.type("r")
    terminal.wait_for("python add.py 1 1: exit 0")
    terminal.type("99")
    terminal.wait_for("'99' is none of that")
    terminal.type("12")
    terminal.type("d")
    terminal.wait_for("delete adding for good?")
    terminal.type("n")
    terminal.type("1")
    terminal.wait_for("waiting-10: c continue")
    terminal.type("d")
    terminal.wait_for("delete waiting-10 for good?")
    terminal.type("y")
    terminal.wait_for("waiting-10 is gone")
    terminal.type("o")
    terminal.wait_for("step mode off")
    terminal.type("s")
    terminal.type("q")
    assert "exit code 0" in terminal.wait_for("exit code")
    left = septet("list").stdout
    assert "adding" in left
    assert "waiting-10" not in left


def test_the_menu_needs_a_terminal(septet: Septet) -> None:
    refused = septet("menu")
    assert refused.returncode == 2
    assert "needs a terminal" in refused.stderr
