"""On a real terminal: the person is asked, answers by keyboard, and sees how it ends."""

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Generator

import pytest
from cli.commands import PATIENCE, SMALL, Septet

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A window of tmux: keys in, screen out."""

    def __init__(self, socket: str) -> None:
        self.socket = socket

    def tmux(self, *args: str) -> str:
        return subprocess.run(
            ["tmux", "-S", self.socket, *args], capture_output=True, text=True, check=False
        ).stdout

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def wait_for(self, text: str) -> str:
        """The screen once it shows the text."""
        end = time.monotonic() + PATIENCE
        while text not in (screen := self.tmux("capture-pane", "-p", "-J", "-S", "-200")):
            assert time.monotonic() < end, screen
            time.sleep(0.05)  # a look at the screen, not a guess how long something takes
        return screen


@pytest.fixture
def terminal(septet: Septet) -> Generator[Terminal]:
    opened = Terminal(str(septet.home.parent / "tmux"))
    settings = [f"{name}={value}" for name, value in septet.environment.items()]
    command = shlex.join(["env", *settings, sys.executable, "-m", "septet", "-m", SMALL])
    opened.tmux(
        "-f", "/dev/null", "new-session", "-d", "-x", "140", "-y", "50", f"{command}; echo exit code $?; cat"
    )
    yield opened
    opened.tmux("kill-server")


def test_a_person_is_asked_for_the_goal_and_the_plan(terminal: Terminal) -> None:
    terminal.wait_for("What python creation would you like? Type below:")
    terminal.type("add two numbers")
    terminal.wait_for("approve the plan [Enter]")
    terminal.type("sounds good")
    terminal.wait_for("try it, then say what you saw")
    terminal.type("the sum is wrong")
    terminal.wait_for("version 2")
    terminal.wait_for("exit 0, prints '5'")
    terminal.type("")
    screen = terminal.wait_for("exit code")
    assert "plan approved" in screen
    assert "done, all checks passed" in screen
    assert "exit code 0" in screen


def test_a_person_can_quit_at_the_plan(terminal: Terminal, septet: Septet) -> None:
    terminal.wait_for("Type below:")
    terminal.type("add two numbers")
    terminal.wait_for("approve the plan")
    terminal.type("q")
    assert "exit code 3" in terminal.wait_for("exit code")
    assert "stopped by the person" in septet("list").stdout
