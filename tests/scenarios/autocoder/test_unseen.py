"""An autocoder whose model cannot see: the picture of the window is told of in words, and the work goes on."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from scenarios.autocoder.hello import fill
from scenarios.autocoder.playing import play
from scenarios.autocoder.test_main_program import MENDED, PLAN, TEST, WINDOW, ending

from septet.domain.messages import ToolCall
from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio


def script(seen: ReceivedRequest) -> Reply:
    role = str(seen.messages[0]["content"])
    if "planner" in role:
        return Reply(text=PLAN)
    if "reviewer" in role:
        return Reply(text="verdict: accept")
    arguments = msgspec.json.encode(MENDED).decode()
    return Reply(calls=(ToolCall(id="c1", name="edit_text", arguments=arguments),), stop="calls")


@pytest.mark.skipif(
    shutil.which("Xvfb") is None or find_spec("tkinter") is None,
    reason="Xvfb or tkinter is not installed here",
)
@pytest.mark.torture
async def test_a_server_without_eyes_gets_words(tmp_path: Path) -> None:
    fill(tmp_path / "project", {"main.py": WINDOW, "test_main.py": TEST})
    async with serve_mock(script, features=frozenset({"tools", "schema"})) as server:
        server.unsupported_message = "messages[1].content must be a string"
        events = await play(tmp_path, f"url:{server.url}#blind")
    assert ending(events) == "done"
    coder = [seen for seen in server.seen if b"You are the coder" in seen.body]
    assert [b"image_url" in seen.body for seen in coder] == [True, False]
    assert b"it left screenshot.png" in coder[-1].body
    assert b"1 picture that you cannot see" in coder[-1].body
