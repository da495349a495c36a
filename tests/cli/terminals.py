"""A real terminal: keys in, screen out."""

import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.commands import PATIENCE, Septet

needs_terminal = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A window of tmux: keys in, screen out."""

    def __init__(self, socket: str) -> None:
        self.socket = socket

    def tmux(self, *args: str) -> str:
        return subprocess.run(
            ["tmux", "-u", "-S", self.socket, *args], capture_output=True, text=True, check=False
        ).stdout

    def type(self, text: str) -> None:
        self.begin(text)
        self.press("Enter")

    def begin(self, text: str) -> None:
        """Type without sending."""
        self.tmux("send-keys", "-l", text)

    def paste(self, text: str) -> None:
        """All at once, marked as pasted where the program asks for that."""
        self.tmux("set-buffer", text)
        self.tmux("paste-buffer", "-p", "-r")

    def press(self, key: str) -> None:
        self.tmux("send-keys", key)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-J", "-S", "-400")

    def wait_for(self, text: str, times: int = 1) -> str:
        """The screen once it shows the text, so many times; a program that has ended shows nothing more."""
        end = time.monotonic() + PATIENCE
        while (screen := self.screen()).count(text) < times:
            over = "exit code" in screen and self.screen().count(text) < times
            assert not over, screen
            assert time.monotonic() < end, screen
            time.sleep(0.05)  # a look at the screen, not a guess how long something takes
        return screen


@contextmanager
def on_terminal(
    septet: Septet, *args: str, environment: Mapping[str, str] | None = None
) -> Generator[Terminal]:
    """`septet ARGS…` on a terminal of its own; its exit code is shown at the end, and what became of the terminal."""
    command = command_line(septet, *args, environment=environment)
    left = '[ "$before" = "$(stty -g)" ] && left="terminal as before"'
    said = 'printf "exit code %s\\n%s\\n" "$code" "$left"'  # at once: who sees the one sees the other
    with running(septet, f"before=$(stty -g); {command}; code=$?; {left}; {said}; cat") as terminal:
        yield terminal


def command_line(septet: Septet, *args: str, environment: Mapping[str, str] | None = None) -> str:
    settings = [f"{name}={value}" for name, value in {**septet.environment, **(environment or {})}.items()]
    return shlex.join(["env", *settings, sys.executable, "-m", "septet", *args])


@contextmanager
def running(septet: Septet, show: str) -> Generator[Terminal]:
    """A shell's command in a window of its own."""
    terminal = Terminal(str(Path(tempfile.mkdtemp(dir=septet.home.parent)) / "tmux"))
    folder = str(septet.home.parent)
    terminal.tmux("-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "60", "-c", folder, show)
    try:
        yield terminal
    finally:
        terminal.tmux("kill-server")
