"""Nothing that others have written commands the person's terminal: all that is shown goes through one door."""

import ast
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml
from cli.commands import SMALL, Septet

CLI = Path(__file__).parents[2] / "src" / "septet" / "cli"
TITLE = "\x1b]0;owned\x07"
ESCAPED = "\\u001b]0;owned\\u0007"
EVIL = f"add{TITLE}\x1b[2J\x9b31m two\u202e numbers"
DRAWS = ("output.py", "footer.py")
"""Who writes to the terminal itself: all others ask them."""


class Refusing(BaseHTTPRequestHandler):
    """Lets nobody in, with words that would rename the window."""

    def do_POST(self) -> None:
        body = json.dumps({"error": {"message": f"no such key{TITLE}"}}).encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it so
        return


@contextmanager
def refusing() -> Generator[str]:
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def commands(text: str) -> list[str]:
    """What a terminal would obey."""
    return [character for character in text if character in "\x1b\x07\x9b\u202e"]


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Septet:
    """A chat whose goal and whose members would draw on the terminal."""
    place = tmp_path_factory.mktemp("evil")
    septet = Septet(place / "home")
    script = yaml.safe_load(Path(SMALL.removeprefix("scripted:")).read_text())
    (place / "script.yaml").write_text(json.dumps(script).replace("gives the sum", f"gives the{ESCAPED} sum"))
    team = {
        "members": [
            {"role": role, "name": f"{role}{TITLE}"} for role in ("planner", "coder", "runner", "reviewer")
        ]
    }
    (place / "team.yaml").write_text(json.dumps(team))
    done = septet("run", EVIL, "-t", "team.yaml", "-m", "scripted:script.yaml", "--yes", "-v", "-n", "evil")
    assert done.returncode == 0, done.stderr
    assert commands(done.stdout + done.stderr) == []
    return septet


@pytest.mark.parametrize(
    "args", [["list"], ["show", "evil"], ["restore", "evil"], ["search", "numbers"]], ids=str
)
@pytest.mark.torture
def test_a_goal_that_would_draw_is_shown_as_text(evil: Septet, args: list[str]) -> None:
    done = evil(*args)
    assert done.returncode == 0, done.stderr
    assert commands(done.stdout + done.stderr) == []


def test_what_programs_read_stays_as_it_is(evil: Septet) -> None:
    (listed,) = evil("list", "--json").stdout.splitlines()
    assert json.loads(listed)["goal"] == EVIL
    first = evil("export", "evil", "--format", "jsonl").stdout.splitlines()[0]
    assert json.loads(first)["data"]["goal"] == EVIL


@pytest.mark.parametrize("args", [["list", "--json"], ["diff", "evil"], ["show", "evil"]], ids=str)
def test_on_a_terminal_json_and_diffs_are_harmless_too(evil: Septet, args: list[str]) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "septet", *args], env=evil.environment, cwd=evil.home.parent, stdout=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 1 << 16):
            shown += piece
    except OSError:  # the other side is closed: all has been read
        pass
    os.close(ours)
    assert process.wait() == 0
    assert shown
    assert commands(shown.decode()) == []


def test_a_servers_words_are_shown_as_text(septet: Septet) -> None:
    with refusing() as url:
        keyed = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-mine"}
        failed = septet("run", "add", "-m", "openai/m", "--yes", "-n", "adding", environment=keyed)
    assert failed.returncode == 5
    assert "no such key" in failed.stderr
    shown = failed.stderr + septet("show", "adding").stdout + septet("list").stdout
    assert "no such key" in shown
    assert commands(shown) == []


@pytest.mark.parametrize(
    "args", [["show", TITLE], ["run", "add", "-t", TITLE], [f"--{TITLE}"], ["run", "-m", TITLE, "x"]]
)
def test_a_mistake_is_told_without_obeying_it(septet: Septet, args: list[str]) -> None:
    failed = septet(*args)
    assert failed.returncode in (2, 5)
    assert "owned" in failed.stderr or "]0;" not in failed.stderr
    assert commands(failed.stderr) == []


@pytest.mark.parametrize(
    "path", [path for path in sorted(CLI.glob("*.py")) if path.name not in DRAWS], ids=lambda path: path.name
)
def test_every_command_writes_through_the_one_door(path: Path) -> None:
    direct = {"click.echo", "click.confirm", "sys.stdout.write", "sys.stderr.write", "print"}
    used = {
        ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    }
    assert used & direct == set()
