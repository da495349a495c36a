"""What a program draws is seen by the reviewer: from the run through the blobs into the request."""

import base64
import struct
import zlib
from pathlib import Path

import pytest

from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import serve_mock
from septet.wiring.api import Team

pytestmark = pytest.mark.anyio


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PICTURE = b"".join(
    (
        b"\x89PNG\r\n\x1a\n",
        chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)),
        chunk(b"IDAT", zlib.compress(b"\x00\x00\xff\x00\xff\x00")),
        chunk(b"IEND", b""),
    )
)
PLAN = "1. It draws a chessboard\n   check: picture board.png\nrun: python draw.py"
CODE = f"""from pathlib import Path

BOARD = {PICTURE!r}


def draw(folder):
    (folder / 'board.png').write_bytes(BOARD)


draw(Path('.'))
"""
TEST = """from draw import BOARD, draw


def test_board(tmp_path):
    draw(tmp_path)
    assert (tmp_path / 'board.png').read_bytes() == BOARD
"""
FILES = f"```python draw.py\n{CODE}```\n\n```python test_draw.py\n{TEST}```"


def script(seen: ReceivedRequest) -> Reply:
    role = str(seen.messages[0]["content"]).split(".")[0]
    if "planner" in role:
        return Reply(text=PLAN)
    return Reply(text="verdict: accept" if "reviewer" in role else FILES)


async def test_the_reviewers_request_holds_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    async with (
        serve_mock(script) as server,
        Team.load("iterate", model=f"url:{server.url}#m", unsafe_local=True) as team,
    ):
        async for _ in team.run("a chessboard", workspace=tmp_path / "work"):
            pass
    assert team.result.status == "done"
    with_picture = [seen for seen in server.seen if base64.b64encode(PICTURE) in seen.body]
    assert len(with_picture) == 1
    assert "reviewer" in str(with_picture[0].messages[0]["content"])
