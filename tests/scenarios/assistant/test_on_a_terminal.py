"""A talk with the assistant on a real terminal: question after question, until the person has had enough."""

from pathlib import Path

from cli.commands import Septet
from cli.terminals import needs_terminal, on_terminal
from scenarios.assistant.scripts import calls, execute, file, says, send, write

pytestmark = needs_terminal


def test_the_talk_goes_on_until_the_person_ends_it_and_can_be_resumed(septet: Septet, tmp_path: Path) -> None:
    model = write(
        tmp_path / "script.yaml",
        calls("proxy", send("six times seven")),
        calls("assistant", file("six.py", "print('product', 6 * 7)\n"), execute("six.py")),
        says("assistant", "six.py printed it"),
        says("proxy", "It is 42."),
        calls("proxy", send("and once more the same, plus one"), expect="plus one?"),
        calls(
            "assistant",
            file("seven.py", "print('sum', 6 * 7 + 1)\n"),
            execute("seven.py"),
            expect="six times",
        ),
        says("assistant", "seven.py printed it"),
        says("proxy", "It is 43."),
        says("proxy", "CERTAIN: you are welcome", expect="It is 43."),
    )
    with on_terminal(
        septet, "run", "six times seven?", "-t", "assistant", "-m", model, "-n", "sums"
    ) as terminal:
        terminal.wait_for("42 ← six.py, output line 1: product 42")
        terminal.wait_for("ask again, or exit (Ctrl-D):")
        terminal.type("")
        terminal.type("plus one?")
        screen = terminal.wait_for("43 ← seven.py, output line 1: sum 43")
        assert screen.count("It is 42.") == 1
        terminal.wait_for("ask again, or exit (Ctrl-D):", times=3)
        terminal.press("C-d")
        assert "septet resume sums" in terminal.wait_for("exit code 0")
    with on_terminal(septet, "resume", "sums", "thanks") as terminal:
        terminal.wait_for("you are welcome")
        terminal.wait_for("ask again")
        terminal.type("exit")
        terminal.wait_for("exit code 0")
    assert "answered" in septet("list").stdout


def test_one_question_is_enough_with_yes(septet: Septet, tmp_path: Path) -> None:
    model = write(tmp_path / "script.yaml", says("proxy", "CERTAIN: hello!"))
    with on_terminal(septet, "run", "hi", "-t", "assistant", "-m", model, "--yes") as terminal:
        assert "ask again" not in terminal.wait_for("exit code 0")
