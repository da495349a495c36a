"""The SDK's own client drives a chat as an editor does: plan, edits, runs, permission, cancel and load."""

import os
import subprocess
import sys
from pathlib import Path

import anyio
import msgspec
import pytest
from acp import RequestError, spawn_agent_process, text_block
from acp.schema import (
    AllowedOutcome,
    AvailableCommandsUpdate,
    ClientCapabilities,
    CreateTerminalResponse,
    EnvVariable,
    PermissionOption,
    RequestPermissionResponse,
    TerminalToolCallContent,
    ToolCallStart,
    WaitForTerminalExitResponse,
)

QUICK = f"scripted:{Path(__file__).parent.parent / 'scripts' / 'quick.yaml'}"


COMMANDS = {
    "/status": "requirement",
    "/diff": "hello.py",
    "/checks": "✓ P1 It greets: 1 passed",
    "/deliver": "nothing to write",
    "/undo": "taken back",
    "/stop": "ended",
}


class Editor:
    """Remembers what it is shown, and permits everything."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.text = ""
        self.diffs: list[str] = []
        self.asked: list[str] = []
        self.version = anyio.Event()
        self.commands: list[str] = []
        self.terminals: list[str] = []
        self.released: list[str] = []
        self.shown: list[str] = []

    async def session_update(self, session_id: str, update: object, **more: object) -> None:
        kind = str(getattr(update, "session_update", ""))
        self.kinds.append(kind)
        if kind == "agent_message_chunk":
            self.text += getattr(getattr(update, "content", None), "text", "")
        if isinstance(update, AvailableCommandsUpdate):
            self.commands = [one.name for one in update.available_commands]
        if isinstance(update, ToolCallStart):
            self.shown += [
                one.terminal_id for one in update.content or () if isinstance(one, TerminalToolCallContent)
            ]
            self.diffs += [str(getattr(content, "new_text", "")) for content in update.content or ()]
            self.version.set()

    async def request_permission(
        self, session_id: str, tool_call: object, options: list[PermissionOption], **more: object
    ) -> RequestPermissionResponse:
        self.asked.append(str(getattr(tool_call, "title", "")))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        )

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[EnvVariable] | None = None,
        **more: object,
    ) -> CreateTerminalResponse:
        """Runs it, as an editor's terminal does."""
        variables = {one.name: one.value for one in env or ()}
        done = await anyio.run_process(
            [command, *(args or ())], env={"PATH": os.environ["PATH"], **variables}, check=False
        )
        self.terminals.append(done.stdout.decode())
        return CreateTerminalResponse(terminal_id=f"terminal-{len(self.terminals)}")

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **more: object
    ) -> WaitForTerminalExitResponse:
        return WaitForTerminalExitResponse(exit_code=0)

    async def release_terminal(self, session_id: str, terminal_id: str, **more: object) -> None:
        self.released.append(terminal_id)

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
    async with spawn_agent_process(
        editor,  # pyright: ignore[reportArgumentType]  # a client that offers no files
        *command,
        env=environment,
        cwd=tmp_path,
        use_unstable_protocol=True,
    ) as (agent, _):
        able = ClientCapabilities(terminal=True)
        assert (await agent.initialize(protocol_version=1, client_capabilities=able)).protocol_version == 1
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
            tasks.start_soon(approve)
            await editor.version.wait()
            await agent.cancel(session_id=name)
        assert stopped == ["cancelled", "cancelled"]
        editor.text = ""
        await agent.prompt(session_id=name, prompt=[text_block("/deliver")])
        assert "there is nothing to write" in editor.text, "it is not finished"
        assert not editor.asked
        await agent.prompt(session_id=name, prompt=[text_block("go on")])
        assert "done" in editor.text
        assert any('return "hello"' in diff for diff in editor.diffs)
        assert len(editor.asked) == 1
        assert (folder / "hello.py").exists()
        assert "hello" in "".join(editor.terminals), "the output of runs is shown in terminals of the editor"
        assert set(editor.shown) == set(editor.released) != set()
        assert {"status", "diff", "checks", "deliver", "undo", "stop"} == set(editor.commands)
        for command, said in COMMANDS.items():
            editor.text = ""
            assert (
                await agent.prompt(session_id=name, prompt=[text_block(command)])
            ).stop_reason == "end_turn"
            assert said in editor.text, command
        assert not (folder / "hello.py").exists(), "it is taken back"
        assert [one.session_id for one in (await agent.list_sessions(cwd=str(folder))).sessions] == [name]
        assert not (await agent.list_sessions(cwd=str(tmp_path))).sessions
        resumed = await agent.resume_session(cwd=str(folder), session_id=name)
        assert resumed.modes is not None
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


HUGE = b'{"jsonrpc":"2.0","id":90,"method":"session/list","params":{}' + b" " * (17 << 20) + b"}"
NONSENSE: list[tuple[bytes, object, int]] = [
    (b"nonsense", None, -32700),
    (b"\xff\xfe", None, -32700),
    (b"[" * 100_000, None, -32600),
    (b"[]", None, -32600),
    (b'"x"', None, -32600),
    (b'{"jsonrpc":"2.0","id":[1]}', None, -32600),
    (b'{"jsonrpc":"2.0","id":2,"method":3}', None, -32600),
    (HUGE, None, -32600),
    (b'{"jsonrpc":"2.0","id":3,"method":"no/such"}', 3, -32601),
    (b'{"jsonrpc":"2.0","id":4,"method":"initialize","params":{}}', 4, -32602),
    (b'{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":3}}', 5, -32602),
    (
        b'{"jsonrpc":"2.0","id":6,"method":"session/new","params":{"cwd":"relative","mcpServers":[]}}',
        6,
        -32602,
    ),
    (
        b'{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"../../etc","cwd":"/","mcpServers":[]}}',
        7,
        -32602,
    ),
    (
        b'{"jsonrpc":"2.0","id":8,"method":"session/prompt","params":{"sessionId":"nobody","prompt":[]}}',
        8,
        -32602,
    ),
]


def test_nonsense_gets_the_errors_of_the_protocol_and_the_agent_lives(tmp_path: Path) -> None:
    last = b'{"jsonrpc":"2.0","id":99,"method":"initialize","params":{"protocolVersion":9999}}'
    done = subprocess.run(
        [sys.executable, "-m", "septet", "acp", "-m", QUICK],
        input=b"\n".join(
            [*(line for line, _, _ in NONSENSE), b'{"jsonrpc":"2.0","id":7000,"result":1}', last]
        )
        + b"\n",
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SEPTET_HOME": str(tmp_path / "home")},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    answers = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    errors = [(one["id"], one["error"]["code"]) for one in answers if "error" in one]
    assert sorted(errors, key=str) == sorted([(id_, code) for _, id_, code in NONSENSE], key=str)
    (opened,) = [one["result"] for one in answers if one["id"] == 99]
    assert opened["protocolVersion"] == 1
