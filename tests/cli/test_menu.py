"""The menu of projects, on a real terminal: every entry of it."""

from collections.abc import Generator
from pathlib import Path

import anyio
import pytest
from cli.commands import MORE, SMALL, Septet
from cli.terminals import Terminal, needs_terminal, on_terminal

from septet.cli.menu import run_program
from septet.cli.options import Options
from septet.domain.plans import Plan
from septet.settings.home import find_home
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model
from septet.workspace.data_cards import describe

TOP = "a number opens a project"


async def begin(home: Path, names: list[str]) -> None:
    """Chats that nobody has conducted yet."""
    async with open_session(find_home({"SEPTET_HOME": str(home)})) as session:
        for name in names:
            await session.start(f"goal of {name}", with_model(TEAMS["iterate"], SMALL), None, name)


@pytest.fixture
def terminal(septet: Septet) -> Generator[Terminal]:
    """More than ten projects, one of them finished."""
    assert septet("run", "add two numbers", "-m", MORE, "--yes", "-q", "-n", "adding").returncode == 0
    anyio.run(begin, septet.home, [f"waiting-{number}" for number in range(11)])
    with on_terminal(septet, environment={"SEPTET_MODEL": SMALL}) as opened:
        yield opened


@needs_terminal
@pytest.mark.torture
def test_every_entry_of_the_menu(terminal: Terminal, septet: Septet) -> None:
    screen = terminal.wait_for(TOP)
    assert " 12  adding" in screen
    run_it(terminal)
    delete(terminal)
    edit(terminal, septet)
    go_on(terminal)
    terminal.type("o")
    terminal.wait_for("step mode off · output: progress · model scripted:")
    terminal.type("s")
    terminal.type("o")
    terminal.wait_for("step mode on")
    terminal.type("s")
    options(terminal)
    make_new(terminal)
    terminal.type("q")
    terminal.wait_for("exit code 0")
    left = septet("list").stdout
    assert "adding" in left
    assert "subtract" in left
    assert "waiting-10" not in left


def run_it(terminal: Terminal) -> None:
    terminal.type("12")
    terminal.wait_for("adding: c continue")
    terminal.type("r")
    terminal.wait_for("python add.py 1 1: exit 0")
    terminal.type("99")
    terminal.wait_for("'99' is not one of the choices")
    terminal.type("12")
    terminal.wait_for("adding: c continue", times=2)
    terminal.type("b")


def delete(terminal: Terminal) -> None:
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


def edit(terminal: Terminal, septet: Septet) -> None:
    terminal.type("11")
    terminal.wait_for("adding: c continue", times=4)
    terminal.type("e")
    terminal.wait_for("what should change?")
    terminal.type("say what the sum is of")
    terminal.wait_for("version 2: add.py")
    terminal.wait_for("adding: done; only the coder's own tests show P1")
    assert "give" in (septet.home / "work" / "adding" / "add.py").read_text()


def go_on(terminal: Terminal) -> None:
    """The project that waits for its plan to be approved; it was edited last, so it is the second now."""
    terminal.type("2")
    terminal.wait_for("waiting-9: c continue")
    terminal.type("c")
    terminal.wait_for("approve the plan [Enter]")
    terminal.type("q")
    terminal.wait_for("waiting-9: stopped by the person")


def options(terminal: Terminal) -> None:
    terminal.type("o")
    terminal.wait_for("step mode off", times=2)
    terminal.type("v")
    terminal.type("o")
    terminal.wait_for("output: all")
    terminal.type("q")
    terminal.type("o")
    terminal.wait_for("output: only results")
    terminal.type("m")
    terminal.type("nonsense/model")
    terminal.type("o")
    terminal.wait_for("model nonsense/model")
    terminal.type("b")


def make_new(terminal: Terminal) -> None:
    """A mistake is said in a line and the menu stays; then it works."""
    terminal.type("n")
    terminal.wait_for("Type below:")
    terminal.type("subtract")
    terminal.wait_for("septet: 'nonsense/model' is not a model name")
    terminal.type("o")
    terminal.wait_for("model nonsense/model", times=2)
    terminal.type("m")
    terminal.type(SMALL)
    terminal.type("n")
    terminal.wait_for("Type below:", times=2)
    terminal.type("subtract")
    terminal.wait_for("approve the plan [Enter]", times=2)
    terminal.type("q")
    terminal.wait_for("  1  subtract-")


@needs_terminal
def test_without_projects_the_menu_begins_one(septet: Septet) -> None:
    with on_terminal(septet, environment={"SEPTET_MODEL": SMALL}) as terminal:
        terminal.wait_for("What python creation would you like? Type below:\n>")
        terminal.press("C-d")
        terminal.wait_for("exit code 4")


@needs_terminal
def test_a_closed_terminal_leaves_the_menu(septet: Septet) -> None:
    assert septet("run", "add", "-m", SMALL, "-q", "-n", "waiting").returncode == 4
    with on_terminal(septet, environment={"SEPTET_MODEL": SMALL}) as terminal:
        terminal.wait_for(TOP)
        terminal.press("C-d")
        terminal.wait_for("exit code 0")


def test_the_menu_needs_a_terminal(septet: Septet) -> None:
    refused = septet("menu")
    assert refused.returncode == 2
    assert "needs a terminal" in refused.stderr


def test_a_program_that_is_run_from_the_menu_may_read_the_chats_data(
    septet: Septet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    work, data = tmp_path / "work", tmp_path / "numbers.csv"
    work.mkdir()
    data.write_text("n\n42\n")
    monkeypatch.setenv("SEPTET_HOME", str(septet.home))

    async def run() -> None:
        async with open_session() as session:
            team = with_model(TEAMS["iterate"], SMALL)
            chat = await session.start("read", team, work, "reading", [await describe(str(data), {})])
            await session.propose(chat, Plan(items=(), run=f"cat {data}"))
        await run_program(chat, Options())

    anyio.run(run)
    assert "42" in capfd.readouterr().out
