"""What a request, a window and a picture show of a program, by real runs, and what they cannot show."""

import random
import shutil
import struct
import zlib
from importlib.util import find_spec
from pathlib import Path

import pytest
from agents.evidence_runs import examine

from septet.common.pictures import recognise
from septet.domain.plans import Check, Plan, Requirement, Serves, ShowsWindow
from septet.team.evidence import shortcomings

pytestmark = pytest.mark.anyio
SERVER = """\
import http.server
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        number = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("of", ["0"])[0]
        body = {body}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.encode())


if __name__ == "__main__":
    http.server.HTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
"""
SHOWN = Serves(path="/double?of=2", prints="4")
HELD = Serves(path="/double?of=21", prints="42", held=True)


def stated(*checks: Check) -> Plan:
    items = tuple(
        Requirement(id=f"P{number}", text=f"shown {number}", check=check)
        for number, check in enumerate(checks, start=1)
    )
    return Plan(items=items, run="python main.py")


@pytest.mark.parametrize(
    ("body", "met"),
    [
        ("str(2 * int(number))", ["P1", "P2"]),
        ("'4' if number == '2' else '0'", ["P1"]),
        ("str(2 * int(number)) if 'Mozilla' not in self.headers.get('User-Agent', '') else '0'", []),
    ],
)
async def test_a_request_that_is_held_back_is_made_by_a_real_run(
    tmp_path: Path, cache: Path, body: str, met: list[str]
) -> None:
    files = {"main.py": SERVER.replace("{body}", body)}
    state = await examine(tmp_path, cache, files, stated(SHOWN, HELD))
    assert [name for name, one in state.work.evidence.items() if one.passed] == met
    assert (shortcomings(state) == []) == (len(met) == 2)
    assert met != ["P1"] or state.work.evidence["P2"].detail == "a request that is held back fails"
    assert "42" not in " ".join(one.detail for one in state.work.evidence.values())


WINDOW = "import tkinter\n\nwindow = tkinter.Tk()\nwindow.title('Clock')\n{}window.mainloop()\n"
CANVAS = "tkinter.Canvas(window, width=300, height=200, bg='red').pack()\n"


@pytest.mark.skipif(
    shutil.which("Xvfb") is None or find_spec("tkinter") is None,
    reason="Xvfb or tkinter is not installed here",
)
@pytest.mark.parametrize("content", [CANVAS, ""])
async def test_a_window_is_there_and_what_it_shows_is_for_people_to_see(
    tmp_path: Path, cache: Path, content: str
) -> None:
    state = await examine(tmp_path, cache, {"main.py": WINDOW.format(content)}, stated(ShowsWindow()))
    assert (state.work.evidence["P1"].passed, state.work.evidence["P1"].detail) == (True, "1024×768 PNG")
    assert shortcomings(state) == ["no test ran"], "a window alone is not enough for done"


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def test_a_picture_of_noise_is_a_picture() -> None:
    """Nobody but who looks at it can tell that it shows nothing; docs/evidence.md says so."""
    head = struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0)
    pixels = b"".join(b"\0" + random.Random(row).randbytes(64) for row in range(64))
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    assert recognise(b"\x89PNG\r\n\x1a\n" + parts).error == ""
