"""Programs with a window and servers end by themselves in these modes, and leave what they showed."""

import shutil
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path

import pytest

from septet.common.pictures import recognise
from septet.domain.runs import Job, Limits, Mode, RunResult, Screen, Server
from septet.errors import NoSandbox, SandboxFailed
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.rungs.landlock import Landlock

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


async def run(workspace: Path, code: str, mode: Mode) -> RunResult:
    (workspace / "program.py").write_text(code)
    command = ("python", "program.py")
    job = Job(command=command, workspace=str(workspace), limits=Limits(seconds=40), mode=mode)
    return await JobRunner(Bubblewrap.detect()).run(job)


async def shown(workspace: Path, code: str, seconds: float = 15.0) -> RunResult:
    return await run(workspace, code, Screen(seconds=seconds, needed=True))


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


ON_THE_BACKGROUND = """
import ctypes, time
x = ctypes.CDLL("libX11.so.6")
x.XOpenDisplay.restype, x.XDefaultRootWindow.restype = ctypes.c_void_p, ctypes.c_ulong
display = ctypes.c_void_p(x.XOpenDisplay(None))
root = ctypes.c_ulong(x.XDefaultRootWindow(display))
x.XSetWindowBackground(display, root, ctypes.c_ulong(0xFF0000))
x.XClearWindow(display, root)
x.XFlush(display)
open("drawn", "w").write("1")
time.sleep(600)
"""


@needs_a_screen
async def test_a_picture_that_the_program_made_itself_is_no_window(tmp_path: Path) -> None:
    result = await shown(tmp_path, "open('screenshot.png', 'wb').write(b'mine')")
    assert [change.path for change in result.changes] == []


@needs_a_screen
@pytest.mark.skipif(find_library("X11") is None, reason="libX11 is not installed here")
async def test_a_drawing_on_the_background_is_no_window(tmp_path: Path) -> None:
    result = await shown(tmp_path, ON_THE_BACKGROUND, seconds=10.0)
    assert result.exit_code == 1
    assert [change.path for change in result.changes] == ["drawn"]


@pytest.mark.parametrize(("status", "code"), [(200, 0), (404, 0), (500, 1)])
async def test_a_server_is_asked_and_ended(tmp_path: Path, status: int, code: int) -> None:
    result = await run(tmp_path, SERVER.format(status=status), Server(path="/page", needed=True))
    assert result.exit_code == code, result
    assert "on port 8123" in result.stdout
    assert f"HTTP {status}" in result.stdout
    assert "hello from /page" in result.stdout
    assert "GET /page" in result.stderr


@pytest.mark.parametrize(
    ("status", "wanted", "code"),
    [
        (200, "hello from /page", 0),
        (201, "", 0),
        (200, "hello from /other", 1),
        (404, "hello", 1),
        (302, "", 1),
    ],
)
async def test_what_an_answer_must_hold_is_looked_for_in_its_body_and_with_2xx_only(
    tmp_path: Path, status: int, wanted: str, code: int
) -> None:
    forged = "print('HTTP 200 OK', flush=True)\nprint('hello from /other', flush=True)\n"
    mode = Server(path="/page", needed=True, holds=wanted)
    result = await run(tmp_path, forged + SERVER.format(status=status), mode)
    assert result.exit_code == code, result


async def test_a_server_that_ends_or_never_answers_is_a_failure(tmp_path: Path) -> None:
    ended = await run(tmp_path, "raise SystemExit(4)", Server(needed=True))
    assert (ended.exit_code, "ended before it answered" in ended.stderr) == (4, True)
    silent = await run(tmp_path, "import time; time.sleep(600)", Server(seconds=1.0, needed=True))
    assert (silent.exit_code, "no answer on" in silent.stderr) == (1, True)
    elsewhere = await run(tmp_path, SERVER.format(status=200), Server(port=8124, seconds=6.0, needed=True))
    assert (elsewhere.exit_code, "on port 8124" in elsewhere.stderr) == (1, True)


async def test_a_handler_that_crashes_is_a_failure_of_a_server_that_speaks_http(tmp_path: Path) -> None:
    code = SERVER.format(status=200).replace("self.send_response(200)", "1 / 0")
    crashed = await run(tmp_path, code, Server(path="/page"))
    assert crashed.exit_code == 1, crashed
    assert "GET /page on port 8123: the connection was closed without an answer" in crashed.stdout
    assert "ZeroDivisionError" in crashed.stderr
    assert "does not speak HTTP" not in crashed.stdout


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("line.sendall(b'who are you?')", "port 8123 is open but does not speak HTTP"),
        ("pass", "port 8123 is open but does not speak HTTP (the connection was closed without an answer)"),
    ],
)
async def test_a_server_of_another_protocol_is_called_so(tmp_path: Path, answer: str, said: str) -> None:
    code = f"""
import socket
with socket.create_server(("127.0.0.1", 8123)) as server:
    while True:
        line, _ = server.accept()
        line.recv(9999)
        {answer}
        line.close()
"""
    other = await run(tmp_path, code, Server())
    assert (other.exit_code, said in other.stdout) == (0, True), other


async def test_what_only_looks_like_a_server_or_a_window_may_just_end(tmp_path: Path) -> None:
    for mode in (Server(), Screen()):
        result = await run(tmp_path, "print('over')", mode)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "over\n", "")
        assert (await run(tmp_path, "raise SystemExit(5)", mode)).exit_code == 5


@needs_a_screen
async def test_tests_of_windows_run_to_their_end_and_leave_no_picture(tmp_path: Path) -> None:
    code = "import time, tkinter\nw = tkinter.Tk(); w.update(); time.sleep(1); w.update(); print(w.winfo_width() > 1)"
    result = await run(tmp_path, code, Screen(picture=""))
    assert (result.exit_code, result.stdout, result.changes) == (0, "True\n", ())


@needs_a_screen
async def test_without_xvfb_a_window_that_is_needed_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxFailed, match="apt install xvfb"):
        await run(tmp_path, CLOCK, Screen(needed=True))
    assert (await run(tmp_path, "print('over')", Screen())).stdout == "over\n"


async def test_a_rung_without_sockets_says_that_it_has_no_screen(tmp_path: Path) -> None:
    try:
        rung = Landlock.detect()
    except NoSandbox as error:
        pytest.skip(str(error))
    (tmp_path / "program.py").write_text("print('over')")
    for mode, code, said in ((Screen(needed=True), 1, "no screen in this sandbox"), (Screen(), 0, "")):
        job = Job(command=("python", "program.py"), workspace=str(tmp_path), mode=mode)
        result = await JobRunner(rung).run(job)
        assert (result.exit_code, said in result.stderr, "Traceback" in result.stderr) == (code, True, False)
