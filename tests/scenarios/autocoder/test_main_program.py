"""main.py runs at each reasoning step; one with a window or one that serves does not hang the loop."""

import shutil
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from scenarios.autocoder.hello import MAIN, fill
from scenarios.autocoder.playing import play

from septet.common.pictures import recognise
from septet.domain.events import ChatEnded, DecisionRecorded, Event, Recorded, RunFinished
from septet.domain.reduce import fold
from septet.ways.autocoder.members import window

pytestmark = pytest.mark.anyio

WINDOW = """import tkinter


def title():
    return "hullo"


if __name__ == "__main__":
    window = tkinter.Tk()
    tkinter.Canvas(window, width=300, height=200, bg="red").pack()
    window.mainloop()
"""
SERVER = """import http.server


def title():
    return "hullo"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(title().encode())


if __name__ == "__main__":
    http.server.HTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
"""
TEST = """from main import title


def test_title():
    assert title() == "hello"
"""
PLAN = """1. The title says hello
   check: tests test_main.py::test_title
run: python main.py
"""
TEST_GREET = """from main import greet


def test_greet():
    assert greet("you") == "hullo, you"
"""
Arguments = Mapping[str, object]
Act = tuple[str, str, Arguments]
WRONG_TEST = {"wrong": "test", "item": "P1", "why": "nobody says hullo"}
MENDED: Arguments = {
    "reasoning": "it is misspelt",
    "path": "main.py",
    "old": "hullo",
    "new": "hello",
    "decision": {"wrong": "code", "item": "P1", "why": "the plan says hello"},
}


def write_script(folder: Path, plan: str, *acts: Act) -> str:
    turns: list[Arguments] = [{"role": "planner", "say": plan}]
    for expect, name, arguments in acts:
        turns.append({"role": "coder", "expect": expect, "calls": [{"name": name, "arguments": arguments}]})
    turns += [{"role": "reviewer", "say": "verdict: accept"}]
    (folder / "script.yaml").write_bytes(msgspec.yaml.encode({"turns": turns}))
    return f"scripted:{folder / 'script.yaml'}"


def mains(events: list[Event]) -> list[RunFinished]:
    return [event for event in events if isinstance(event, RunFinished) and event.purpose == "run"]


def ending(events: list[Event]) -> str:
    return next(event.reason for event in events if isinstance(event, ChatEnded))


@pytest.mark.torture
async def test_main_is_run_at_each_reasoning_step(tmp_path: Path) -> None:
    """Also where the plan names no program, and where only a test has changed."""
    fill(tmp_path / "project", {"main.py": MAIN.replace("hello", "hullo"), "test_main.py": TEST_GREET})
    plain = {name: value for name, value in MENDED.items() if name != "decision"}
    steps: list[Act] = [
        ("hullo, world", "edit_text", plain),
        ("hello, world", "edit_text", {**MENDED, "path": "test_main.py", "decision": WRONG_TEST}),
    ]
    plan = "1. greets\n   check: command python main.py => hello, world\n"
    events = await play(tmp_path, write_script(tmp_path, plan, *steps))
    assert ending(events) == "done"
    reasoned = [event for event in events if isinstance(event, DecisionRecorded) and event.case]
    assert [run.id for run in mains(events)] == ["v1 run", "v2 run", "v3 run"]
    assert len(reasoned) == len(mains(events))


@pytest.mark.skipif(
    shutil.which("Xvfb") is None or find_spec("tkinter") is None,
    reason="Xvfb or tkinter is not installed here",
)
async def test_a_window_is_photographed_and_closed(tmp_path: Path) -> None:
    fill(tmp_path / "project", {"main.py": WINDOW, "test_main.py": TEST})
    model = write_script(
        tmp_path,
        PLAN,
        ("`python main.py` on a screen: succeeded\nit left screenshot.png (", "edit_text", MENDED),
    )
    events = await play(tmp_path, model)
    assert ending(events) == "done"
    assert [(run.mode, run.result.stopped_by) for run in mains(events)] == [("screen", None)] * 2
    picture = (tmp_path / "project" / "screenshot.png").read_bytes()
    assert not recognise(picture).error
    log = [
        Recorded(chat="c", seq=number, at=0.0, event=event) for number, event in enumerate(events, start=1)
    ]
    assert window(fold(log)) == (sha256(picture).hexdigest(),), "a coder that can see would see it"


async def test_a_server_is_asked_and_stopped(tmp_path: Path) -> None:
    fill(tmp_path / "project", {"main.py": SERVER, "test_main.py": TEST})
    model = write_script(tmp_path, PLAN, ("`python main.py` as a server: succeeded", "edit_text", MENDED))
    events = await play(tmp_path, model)
    assert ending(events) == "done"
    assert [(run.mode, run.result.stopped_by) for run in mains(events)] == [("server", None)] * 2
    assert "hello" in mains(events)[-1].result.stdout
