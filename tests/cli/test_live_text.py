"""What a person sees of words while they come, of a version's change, of the table and of the footer, in any width."""

import re

import pytest
from cli.commands import Septet
from cli.terminals import needs_terminal, on_terminal
from cli.test_watch import Members, answering
from team.states import chat, planned, ran, reviewed, version

from septet.agents.ask import Live
from septet.chat.results import report_table
from septet.cli.live_text import LiveText
from septet.cli.progress import footer_text

CODE = "Two files:\n\n```python add.py\ndef add(a, b):\n    return a + b"


def live(*texts: str, coloured: bool = False) -> LiveText:
    shown = LiveText(coloured)
    for text in texts:
        shown.add(Live(speaker="coder", text=text))
    return shown


def test_the_last_lines_are_shown_and_cut_to_the_width() -> None:
    assert live(CODE).screen_text(80, 2) == "def add(a, b):\n    return a + b"
    assert live(CODE[:30], CODE[30:]).screen_text(80, 9) == CODE
    assert live("x" * 99).screen_text(20, 3) == "x" * 19
    assert live(CODE).screen_text(80, 0) == ""
    assert live("a\x1b[2Jb").screen_text(80, 3) == "ab"


def test_code_has_colours_from_its_first_line_on() -> None:
    shown = live(CODE, coloured=True).screen_text(80, 2)
    assert "\x1b[94mdef\x1b[0m" in shown or "\x1b[34mdef\x1b[0m" in shown
    assert "\x1b[90mTwo files:" in live(CODE, coloured=True).screen_text(80, 9)


def test_another_speaker_or_a_new_attempt_begins_anew() -> None:
    shown = live("first")
    shown.add(Live(speaker="coder", restarted=True))
    assert shown.screen_text(80, 3) == ""
    shown.add(Live(speaker="coder", text="second"))
    shown.add(Live(speaker="reviewer", text="third"))
    assert shown.screen_text(80, 3) == "third"


WORK = [*planned(), *version(1, "a"), *ran(1, "a", green=False)]


def test_the_footer_stays_on_one_line_and_keeps_what_is_known() -> None:
    state = chat(WORK)
    whole = footer_text(state)
    assert "1/2 checks met" in whole
    narrow = footer_text(state, width=30)
    assert len(narrow) < 30
    assert whole.startswith(narrow)
    again = chat([*WORK, *reviewed(1, accept=False), *version(2, "b")])
    assert "1/2 checks met" in footer_text(again)


@pytest.mark.parametrize("width", [40, 60, 79, 80, 100, 200])
def test_the_table_fits_and_names_each_requirement_whole(width: int) -> None:
    table = report_table(chat(WORK), width)
    assert max(map(len, table.splitlines())) <= max(width, 60)
    words = " ".join(table.split())
    assert "✗ P1" in words
    if width < 80:
        assert "test_add.py::test_sum" in words


@needs_terminal
@pytest.mark.parametrize("colours", ["", "1"])
def test_a_version_shows_what_it_changed(septet: Septet, colours: str) -> None:
    with on_terminal(septet, "demo", "clock", "--yes", environment={"NO_COLOR": colours}) as terminal:
        screen = terminal.wait_for("exit code 0")
        painted = terminal.tmux("capture-pane", "-p", "-e", "-J", "-S", "-400")
    assert "+    return hour % 12 * 30 + minute * 0.5" in screen
    assert "✓ tests → 5 passed" in screen
    assert bool(re.search(r"\x1b\[32m(\x1b\[\d+m)*\+ +return hour", painted)) is not bool(colours)


@needs_terminal
def test_words_are_seen_while_they_come_and_are_gone_when_they_are_recorded(septet: Septet) -> None:
    """The coder's first answer stalls in its middle."""
    members = Members("nobody")
    with (
        answering(members, {2: "stall midway"}) as server,
        on_terminal(septet, "run", "add numbers", "--yes", "-m", f"url:{server.url}#m") as terminal,
    ):
        terminal.wait_for("    return a + b")
        terminal.wait_for("round 1 of 8 · waiting for the coder")
        terminal.press("C-c")
        terminal.wait_for("interrupted: [Enter] continues")
        terminal.type("")
        screen = terminal.wait_for("terminal as before")
    assert "exit code 0" in screen
    assert "def add(a, b):" not in screen


@needs_terminal
def test_a_long_diff_waits_in_a_pager_and_a_short_one_does_not(septet: Septet) -> None:
    assert septet("demo", "clock", "--yes").returncode == 0
    chat_name = septet("list").stdout.split()[0]
    pager = {"PAGER": "sed 's/^/paged: /'"}
    with on_terminal(septet, "diff", chat_name, "v1", "v2", environment=pager) as terminal:
        assert "paged: " not in terminal.wait_for("exit code 0")
    with on_terminal(septet, "diff", chat_name, "v1", "v2", environment={**pager, "LINES": "5"}) as terminal:
        assert "paged: " in terminal.wait_for("exit code 0")
    assert "\x1b" not in septet("diff", chat_name, "v1", "v2").stdout
