"""At a question one Ctrl-C is enough, and what is said afterwards is true."""

from cli.commands import SMALL, Septet
from cli.terminals import needs_terminal, on_terminal


@needs_terminal
def test_one_ctrl_c_at_a_plan_keeps_the_chat(septet: Septet) -> None:
    with on_terminal(septet, "run", "add two numbers", "-m", SMALL, "-n", "adding") as terminal:
        terminal.wait_for("run: python add.py 1 1")
        terminal.wait_for("approve the plan")
        terminal.press("C-c")
        assert "interrupted: septet resume adding" in terminal.wait_for("exit code 130")
    assert "waits for the person" in septet("list").stdout


@needs_terminal
def test_one_ctrl_c_at_a_key_stores_nothing(septet: Septet) -> None:
    with on_terminal(septet, "login", "openai") as terminal:
        terminal.wait_for("key:")
        terminal.press("C-c")
        terminal.wait_for("exit code 130")
    assert not (septet.home / "config" / "keys.json").exists()
