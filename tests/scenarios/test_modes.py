"""Programs with a window, servers and programs in other languages, built by the iterating team."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli.commands import SCRIPTS, Septet

from septet.common.pictures import recognise
from septet.domain.codec import decode
from septet.domain.events import RunFinished


def run(septet: Septet, script: str, *options: str) -> list[RunFinished]:
    """The runs of a chat that ends done."""
    model = f"scripted:{SCRIPTS / script}"
    done = septet("run", "it", "-C", "w", "-n", "it", "--yes", "--json", "-m", model, *options)
    assert done.returncode == 0, done.stderr
    events = [decode(line).event for line in done.stdout.splitlines()[:-1]]
    return [event for event in events if isinstance(event, RunFinished)]


@pytest.mark.skipif(
    shutil.which("Xvfb") is None or find_spec("tkinter") is None,
    reason="Xvfb or tkinter is not installed here",
)
def test_a_clock_shows_its_window_and_its_picture_is_the_evidence(septet: Septet, tmp_path: Path) -> None:
    runs = run(septet, "window.yaml")
    assert [
        (one.purpose, one.mode, one.result.succeeded)
        for one in runs
        if one.purpose not in ("tests alone", "special cases")
    ] == [
        ("run", "screen", False),
        ("tests", "screen", True),
        ("run", "screen", True),
        ("tests", "screen", True),
    ]
    assert recognise((tmp_path / "w" / "screenshot.png").read_bytes()).kind == "1024×768 PNG"
    shown = septet("show", "it").stdout
    assert "made: screenshot.png" in shown
    assert "1024×768 PNG" in shown


def test_a_server_is_asked_what_the_plan_says(septet: Septet) -> None:
    runs = run(septet, "server.yaml")
    asked = [one for one in runs if one.mode == "server"]
    assert [(one.title, one.result.exit_code) for one in asked] == [
        ("run", 0),
        ("check P2", 0),
        ("check P3", 1),
        ("run", 0),
        ("check P2", 0),
        ("check P3", 0),
    ]
    assert "Hello, you!" in asked[-1].result.stdout
    assert '"GET / HTTP/1.1" 200' in asked[-1].result.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed here")
def test_a_program_in_another_language_is_run_and_tested_by_its_own(septet: Septet, tmp_path: Path) -> None:
    roles = ("planner", "proxy", "coder", "runner", "reviewer")
    members = "".join(f"- role: {role}\n" for role in roles)
    (tmp_path / "node.yaml").write_text(f"tests: node --test\nmembers:\n{members}")
    runs = run(septet, "node.yaml", "-t", "node.yaml")
    assert [(one.title, one.command, one.result.exit_code) for one in runs] == [
        ("run", "node main.mjs 1 1", 0),
        ("tests", "node --test", 0),
        ("check P2", "node main.mjs 2 3", 0),
        ("tests alone", "node --test", 1),
        ("hollow check P2", "node main.mjs 2 3", 1),
    ]
