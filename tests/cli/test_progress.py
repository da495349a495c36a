"""On a real terminal: the person is asked, answers by keyboard, and sees how it ends."""

from collections.abc import Generator

import pytest
from cli.commands import SMALL, Septet
from cli.terminals import Terminal, needs_terminal, on_terminal

from septet.cli.progress import outcome_style

pytestmark = needs_terminal


@pytest.fixture
def terminal(septet: Septet) -> Generator[Terminal]:
    with on_terminal(septet, "-m", SMALL) as opened:
        yield opened


def test_a_person_is_asked_for_the_goal_and_the_plan(terminal: Terminal) -> None:
    terminal.wait_for("What python creation would you like? Type below:")
    terminal.type("add two numbers")
    terminal.wait_for("approve the plan [Enter]")
    terminal.type("sounds good")
    terminal.wait_for("try it, then say what you saw")
    terminal.type("the sum is wrong")
    terminal.wait_for("version 2")
    terminal.wait_for("try it, then say what you saw", times=2)
    terminal.type("")
    screen = terminal.wait_for("exit code")
    assert "plan approved" in screen
    assert "done; only the coder's own tests show P1" in screen
    assert "exit code 0" in screen


def test_a_person_can_quit_at_the_plan(terminal: Terminal, septet: Septet) -> None:
    terminal.wait_for("Type below:")
    terminal.type("add two numbers")
    terminal.wait_for("approve the plan")
    terminal.type("q")
    assert "exit code 3" in terminal.wait_for("exit code")
    assert "stopped by the person" in septet("list").stdout


def test_ctrl_c_at_a_question_saves_and_leaves_in_one_line(terminal: Terminal, septet: Septet) -> None:
    terminal.wait_for("Type below:")
    terminal.type("add two numbers")
    terminal.wait_for("approve the plan")
    terminal.press("C-c")
    screen = terminal.wait_for("exit code 130")
    assert "septet: interrupted: septet resume add-two-numbers-" in screen
    assert "Traceback" not in screen
    assert "waits for the person to approve the plan" in septet("list").stdout


def test_a_chat_is_stepped_and_then_left_to_itself(septet: Septet) -> None:
    with on_terminal(septet, "demo", "hello", "--step") as terminal:
        terminal.wait_for("[Enter] do · e edit · c continue · q quit")
        assert "3 requirements" not in terminal.screen(), "nothing happens before it is wanted"
        terminal.type("")
        terminal.wait_for("approve the plan [Enter]")
        terminal.type("")
        terminal.wait_for("[Enter] do · e edit · c continue · q quit", times=2)
        terminal.type("")
        terminal.wait_for("decided: main.py is wrong")
        screen = terminal.wait_for("[Enter] do · e edit · c continue · q quit", times=3)
        assert "version 2" not in screen
        terminal.type("c")
        screen = terminal.wait_for("exit code 0")
    assert screen.count("[Enter] do · e edit · c continue · q quit") == 3
    assert "done; the coder knew every example of P1 and P2" in screen


def test_long_lines_are_broken_between_words_on_a_narrow_terminal(septet: Septet) -> None:
    with on_terminal(septet, "demo", "clock", environment={"COLUMNS": "40"}) as terminal:
        screen = terminal.wait_for("plan approved")
    margin = " " * 11
    assert f"{margin}5. The clock is drawn as a\n{margin}picture, without a screen\n" in screen


def test_an_interrupted_chat_goes_on_with_what_the_person_says(septet: Septet) -> None:
    with on_terminal(septet, "demo", "clock") as terminal:
        terminal.wait_for("version 1: clock.py")
        terminal.press("C-c")
        terminal.wait_for("interrupted: [Enter] continues")
        terminal.type("make the hands thinner")
        screen = terminal.wait_for("exit code 0")
    assert "done; only the reviewer's judgement shows W1" in screen
    assert screen.count("version 1: clock.py") == 1, "nothing is done twice"
    assert "make the hands thinner" in septet("export", "clock", "--format", "txt").stdout


@pytest.mark.torture
def test_an_interrupted_chat_can_be_left_and_resumed(septet: Septet) -> None:
    with on_terminal(septet, "demo", "clock") as terminal:
        terminal.wait_for("version 1: clock.py")
        terminal.press("C-c")
        terminal.wait_for("interrupted: [Enter] continues")
        terminal.type("q")
        terminal.wait_for("interrupted and saved: septet resume clock-")
        terminal.wait_for("exit code 130")
    assert septet("resume", "--last", "-q").returncode == 0


def test_a_list_has_a_line_for_each_chat_on_a_narrow_terminal(septet: Septet) -> None:
    septet("run", "add " + "two " * 20 + "numbers", "-m", SMALL, "-n", "adding")
    with on_terminal(septet, "list", environment={"COLUMNS": "40"}) as terminal:
        screen = terminal.wait_for("exit code 0")
    assert screen.splitlines()[0] == "adding  waits for the …  Add two two tw…"


@pytest.mark.parametrize(
    ("line", "style"),
    [
        ("✓ P1 1 passed", "green"),
        ("verdict: accept", "green"),
        ("✗ P2 1 failed", "red"),
        ("✗ tests → 1 failed, 4 passed · 0.7 s", "red"),
        ("✓ tests → 5 passed · 0.7 s", "green"),
        ("verdict: revise", "yellow"),
        ("version 1: clock.py", ""),
    ],
)
def test_a_line_has_the_colour_of_its_outcome(line: str, style: str) -> None:
    assert outcome_style(line) == style
