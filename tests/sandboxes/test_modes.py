"""Programs with a window and servers end by themselves in these modes, and leave what they showed."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from septet.domain.pictures import recognise
from septet.domain.runs import Job, Limits, RunResult
from septet.sandboxes.bubblewrap import Bubblewrap
from septet.sandboxes.modes import as_server, with_screen

pytestmark = pytest.mark.anyio

CLOCK = """
import math, time, tkinter
window = tkinter.Tk()
canvas = tkinter.Canvas(window, width=300, height=300, bg="white")
canvas.pack()
canvas.create_oval(10, 10, 290, 290, fill="red")
window.mainloop()
"""
SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status}); self.end_headers(); self.wfile.write(b"hello from " + self.path.encode())
http.server.HTTPServer(("127.0.0.1", 8123), Handler).serve_forever()
"""

needs_a_screen = pytest.mark.skipif(
    shutil.which("Xvfb") is None or find_spec("tkinter") is None,
    reason="Xvfb or tkinter is not installed here",
)


def job(workspace: Path, code: str) -> Job:
    (workspace / "program.py").write_text(code)
    return Job(command=("python", "program.py"), workspace=str(workspace), limits=Limits(seconds=40))


async def shown(workspace: Path, code: str, seconds: float = 15.0) -> RunResult:
    return await Bubblewrap.found().run(with_screen(job(workspace, code), seconds=seconds))


@needs_a_screen
async def test_a_window_leaves_its_picture_and_is_closed(tmp_path: Path) -> None:
    result = await shown(tmp_path, CLOCK)
    assert result.succeeded, result
    assert [change.path for change in result.changes] == ["screenshot.png"]
    assert recognise((tmp_path / "screenshot.png").read_bytes()).kind == "1024×768 PNG"


@needs_a_screen
async def test_a_program_that_fails_before_its_window_is_a_failure(tmp_path: Path) -> None:
    result = await shown(tmp_path, "import tkinter\ntkinter.Tk()\nraise SystemExit(3)")
    assert result.exit_code == 3


@needs_a_screen
async def test_a_program_that_shows_nothing_is_a_failure_that_says_so(tmp_path: Path) -> None:
    result = await shown(tmp_path, "import time; time.sleep(600)", seconds=1.0)
    assert result.exit_code == 1
    assert "nothing was shown" in result.stderr
    assert result.changes == ()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (404, 0), (500, 1)])
async def test_a_server_is_asked_and_ended(tmp_path: Path, status: int, code: int) -> None:
    asked = as_server(job(tmp_path, SERVER.format(status=status)), 8123, "/page")
    result = await Bubblewrap.found().run(asked)
    assert result.exit_code == code, result
    assert f"HTTP {status}" in result.stdout
    assert "hello from /page" in result.stdout
    assert "GET /page" in result.stderr


async def test_a_server_that_ends_or_never_answers_is_a_failure(tmp_path: Path) -> None:
    result = await Bubblewrap.found().run(as_server(job(tmp_path, "raise SystemExit(4)"), 8123))
    assert result.exit_code == 4
    result = await Bubblewrap.found().run(
        as_server(job(tmp_path, "import time; time.sleep(600)"), 8123, seconds=1.0)
    )
    assert (result.exit_code, "nobody answered" in result.stderr) == (1, True)
