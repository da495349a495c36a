"""The SDK's own client drives a chat as an editor does: plan, edits, runs, permission, cancel and load."""

import os
import sys
from pathlib import Path

import anyio
import pytest
from acp import RequestError, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, PermissionOption, RequestPermissionResponse, ToolCallStart

QUICK = f"scripted:{Path(__file__).parent.parent / 'scripts' / 'quick.yaml'}"


class Editor:
    """Remembers what it is shown, and permits everything."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.text = ""
        self.diffs: list[str] = []
        self.asked: list[str] = []
        self.version = anyio.Event()

    async def session_update(self, session_id: str, update: object, **more: object) -> None:
        kind = str(getattr(update, "session_update", ""))
        self.kinds.append(kind)
        if kind == "agent_message_chunk":
            self.text += getattr(getattr(update, "content", None), "text", "")
        if isinstance(update, ToolCallStart):
            self.diffs += [str(getattr(content, "new_text", "")) for content in update.content or ()]
            self.version.set()

    async def request_permission(
        self, session_id: str, tool_call: object, options: list[PermissionOption], **more: object
    ) -> RequestPermissionResponse:
        self.asked.append(str(getattr(tool_call, "title", "")))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        )

    def on_connect(self, conn: object) -> None:
        """Nothing is asked of the agent here."""


@pytest.mark.anyio
async def test_an_editor_drives_a_chat_and_permits_its_delivery(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SEPTET_HOME": str(tmp_path / "home")}
    editor = Editor()
    command = [sys.executable, "-m", "septet", "acp", "-m", QUICK]
    async with spawn_agent_process(editor, *command, env=environment, cwd=tmp_path) as (agent, _):  # pyright: ignore[reportArgumentType]  # a client that offers neither files nor terminals
        assert (await agent.initialize(protocol_version=1)).protocol_version == 1
        made = await agent.new_session(cwd=str(folder))
        assert made.modes is not None
        assert made.modes.current_mode_id == "iterate"
        name = made.session_id
        await agent.load_session(cwd=str(folder), session_id=name)  # as acpx does, before the chat has begun
        first = await agent.prompt(session_id=name, prompt=[text_block("greet")])
        assert first.stop_reason == "end_turn"
        assert "Approve this plan?" in editor.text
        assert "plan" in editor.kinds
        stopped: list[str] = []
        async with anyio.create_task_group() as tasks:

            async def approve() -> None:
                answer = await agent.prompt(session_id=name, prompt=[text_block("yes")])
                stopped.append(answer.stop_reason)

            tasks.start_soon(approve)
            await editor.version.wait()
            await agent.cancel(session_id=name)
        assert stopped == ["cancelled"]
        assert not editor.asked
        await agent.prompt(session_id=name, prompt=[text_block("go on")])
        assert "done" in editor.text
        assert any('return "hello"' in diff for diff in editor.diffs)
        assert len(editor.asked) == 1
        assert (folder / "hello.py").exists()
        shown = len(editor.kinds)
        await agent.load_session(cwd=str(folder), session_id=name)
        assert "tool_call" in editor.kinds[shown:]
        for wrong in ("relative", str(tmp_path / "nowhere")):
            with pytest.raises(RequestError):
                await agent.new_session(cwd=wrong)
        with pytest.raises(RequestError):
            await agent.prompt(session_id="nobody", prompt=[text_block("x")])
        with pytest.raises(RequestError):
            await agent.ext_method("no/such", {})
