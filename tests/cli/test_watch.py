"""Typing while the team works, on a real terminal: seen as it is typed, heard in the next turn, nothing smeared."""

import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import anyio
import pytest
from cli.commands import PATIENCE, SMALL, Septet
from cli.terminals import Terminal, command_line, needs_terminal, on_terminal, running

from septet.cli.options import Bounds
from septet.cli.watch import reopen_for
from septet.domain.events import ChatEnded, PersonSpoke
from septet.testing.replies import Fault, ReceivedRequest, Reply
from septet.testing.server import MockServer, serve_mock
from septet.wiring.session import open_session

pytestmark = needs_terminal

REPLIES = {
    "planner": "1. It prints the sum\n   check: command python add.py => 5\nrun: python add.py",
    "coder": "```python add.py\ndef add(a, b):\n    return a + b\n\n\nprint(add(2, 3))\n```\n"
    "```python test_add.py\nfrom add import add\n\n\ndef test_sum():\n    assert add(2, 3) == 5\n```",
    "reviewer": "verdict: accept",
}


class Members:
    """One of them answers only when it is let. The coder does something for every wish that it is told."""

    def __init__(self, slow: str) -> None:
        self.slow = slow
        self.asked = threading.Event()
        self.may_answer = threading.Event()

    def __call__(self, seen: ReceivedRequest) -> Reply:
        role = role_of(seen)
        if role == self.slow:
            self.asked.set()
            assert self.may_answer.wait(PATIENCE)
        wishes = str(seen.messages).count("(new)") if role == "coder" else 0
        return Reply(text=REPLIES[role].replace("a + b\n", f"a + b{'  # as you wish' * wishes}\n"))


@contextmanager
def answering(members: Members, faults: dict[int, Fault] | None = None) -> Generator[MockServer]:
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve_mock(members, faults)) as server,
    ):
        try:
            yield server
        finally:
            members.may_answer.set()


def role_of(seen: ReceivedRequest) -> str:
    briefed = str(seen.messages[0]["content"])
    return next(role for role in REPLIES if briefed.startswith(f"You are the {role}"))


def ticks(terminal: Terminal) -> None:
    """Waits until the footer has shown three different seconds, while nothing else happens."""
    seen: set[str] = set()
    end = time.monotonic() + PATIENCE
    while len(seen) < 3:
        seen |= set(re.findall(r"waiting for the coder, (\d+) s", terminal.screen()))
        assert time.monotonic() < end, seen
        time.sleep(0.05)  # a look at the screen, not a guess how long something takes


def told(server: MockServer, role: str) -> list[str]:
    return [str(seen.messages) for seen in server.seen if role_of(seen) == role]


def test_what_is_typed_while_the_team_works_is_heard_in_the_next_turn(septet: Septet) -> None:
    members = Members("coder")
    with answering(members, {1: "unavailable", 2: "unavailable"}) as server:
        arguments = ("run", "add numbers", "--yes", "-m", f"url:{server.url}#m")
        with on_terminal(septet, *arguments) as terminal:
            terminal.wait_for("   septet  no answer yet (")
            terminal.wait_for("waiting for the coder")
            terminal.begin("thinner hänxx")
            terminal.press("BSpace")
            terminal.press("BSpace")
            terminal.begin("ds 時計")
            terminal.wait_for("> thinner händs 時計")
            terminal.paste(", and\nblue")
            terminal.wait_for("\nblue")
            terminal.press("Enter")
            terminal.wait_for("queued for the next turn: thinner händs 時計, and blue")
            ticks(terminal)
            members.may_answer.set()
            screen = terminal.wait_for("terminal as before")
    assert "exit code 0" in screen
    assert "   person  thinner händs 時計, and\n           blue\n" in screen
    assert "queued for" not in screen
    assert "waiting for" not in screen
    assert "\n>" not in screen
    assert all("thinner händs 時計, and\\nblue" in text for text in told(server, "reviewer"))
    assert "thinner händs 時計, and\\nblue" in told(server, "coder")[1]
    assert "thinner händs" in told(server, "planner")[3], "it looks whether the wish needs a check"
    assert len(told(server, "planner")) == 4


def test_a_question_takes_up_what_is_being_typed(septet: Septet) -> None:
    members = Members("planner")
    with (
        answering(members) as server,
        on_terminal(septet, "plan", "add numbers", "-m", f"url:{server.url}#m") as terminal,
    ):
        terminal.wait_for("waiting for the planner")
        terminal.begin("three num")
        terminal.wait_for("> three num")
        members.may_answer.set()
        terminal.wait_for("(q quits): three num")
        assert "waiting for" not in terminal.screen()
        terminal.type("bers")
        terminal.wait_for("   person  three numbers")
        terminal.wait_for("(q quits):", times=2)
        terminal.press("C-d")
        screen = terminal.wait_for("terminal as before")
    assert "septet: the terminal was closed: septet resume " in screen
    assert "exit code 4" in screen
    assert "three numbers" in told(server, "planner")[1]


def test_a_stopped_or_killed_chat_leaves_the_terminal_as_it_was(septet: Septet) -> None:
    members = Members("coder")
    with answering(members) as server:
        command = command_line(septet, "run", "add numbers", "--yes", "-m", f"url:{server.url}#m")
        with running(septet, "bash --norc -i") as terminal:
            terminal.type("before=$(stty -g)")
            terminal.type(command)
            terminal.wait_for("waiting for the coder")
            terminal.begin("half a wo")
            terminal.wait_for("> half a wo")
            terminal.press("C-z")
            terminal.wait_for("Stopped")
            terminal.type('[ "$before" = "$(stty -g)" ] && echo stopped, terminal as before | cat')
            terminal.wait_for("\nstopped, terminal as before")
            terminal.type("fg")
            terminal.wait_for("> half a wo", times=1)
            terminal.begin("rd")
            terminal.wait_for("> half a word")
            os.kill(child_of(terminal), signal.SIGTERM)
            terminal.wait_for("interrupted and saved: septet resume add-numbers-")
            terminal.type('[ "$before" = "$(stty -g)" ] && echo killed, terminal as before | cat')
            screen = terminal.wait_for("\nkilled, terminal as before")
    assert "Traceback" not in screen


def child_of(terminal: Terminal) -> int:
    shell = terminal.tmux("display-message", "-p", "#{pane_pid}").strip()
    found = subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True, check=True)
    return int(found.stdout.split()[0])


@pytest.mark.parametrize("flag", ["-q", "--json", "--plain"])
def test_nothing_moves_where_that_is_not_wanted(septet: Septet, flag: str) -> None:
    members = Members("coder")
    with answering(members) as server:
        arguments = ("run", "add numbers", "--yes", "-m", f"url:{server.url}#m", flag)
        with on_terminal(septet, *arguments) as terminal:
            assert members.asked.wait(PATIENCE)
            screen = terminal.screen()
    assert "waiting for" not in screen
    assert "\n>" not in screen


def heard(septet: Septet, *args: str, environment: Mapping[str, str] | None = None) -> int:
    """How often the bell rings where a person approves the plan."""
    command = command_line(septet, "plan", "add", "--plain", "-m", SMALL, *args, environment=environment)
    sound = septet.home.parent / "sound"
    with running(septet, f"script -qec {shlex.quote(command)} {sound}; echo exit code $?; cat") as terminal:
        terminal.wait_for("q quits")
        terminal.type("yes")
        terminal.wait_for("exit code 0")
    return sound.read_bytes().count(b"\a")


def test_the_bell_rings_at_a_question_and_at_the_end_for_who_wants_it(septet: Septet) -> None:
    assert heard(septet, "--bell") == 2
    assert heard(septet, environment={"SEPTET_BELL": "1"}) == 2
    assert heard(septet) == 0
    silent = septet("plan", "add", "--bell", "--yes", "-m", SMALL)
    assert (silent.returncode, "\a" in silent.stderr + silent.stdout) == (0, False)


def test_words_that_come_when_all_is_done_open_the_chat_again_but_no_bound(
    adding: Septet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(adding.home))

    async def late() -> None:
        async with open_session() as session:
            await session.append("adding", PersonSpoke(text="in blue"))
            assert await reopen_for(True, "", session, "adding", Bounds())
            state = await session.state("adding")
            assert state.ended is None
            assert [remark.text for remark in state.talk.remarks] == ["in blue"]
            await session.append("adding", ChatEnded(reason="bound", detail="8 rounds are used up"))
            assert not await reopen_for(True, "and th", session, "adding", Bounds())

    anyio.run(late)
    assert capsys.readouterr().err == "septet: not sent: and th\n"
