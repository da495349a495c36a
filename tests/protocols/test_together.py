"""A chat is the same chat for everybody: begun by one protocol, answered by a second, watched by a third, delivered."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from a2a.types.a2a_pb2 import GetTaskRequest, TaskState
from cli.commands import Septet
from openai import OpenAI
from protocols.test_a2a import connected as by_a2a
from protocols.test_a2a import last_state, turn, words
from protocols.test_mcp_server import connected as by_mcp
from protocols.test_mcp_server import content, served
from web.serving import Web, kinds

TOKEN = "a-token-of-the-tests"
QUICK = f"scripted:{Path(__file__).parent.parent / 'scripts' / 'quick.yaml'}"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with served(tmp_path, QUICK) as web:
        yield web


@pytest.mark.anyio
async def test_begun_by_a2a_answered_by_mcp_watched_on_the_page_and_read_by_the_command_line(
    web: Web, tmp_path: Path
) -> None:
    async with by_a2a(web) as agent:
        asked = await turn(agent, words("greet"))
        assert last_state(asked) == TaskState.TASK_STATE_INPUT_REQUIRED
        task = asked[0].task
        with web.watch(task.context_id) as page:
            async with by_mcp(web, "auto") as client:
                done = content(await client.call_tool("answer", {"chat": task.context_id, "text": "yes"}))
                assert done["status"] == "done"
            seen = b""
            while b"chat_ended" not in seen:
                seen += page.recv(60, decode=False)
            assert b"plan_approved" in seen
        found = await agent.get_task(GetTaskRequest(id=task.id))
        assert found.status.state == TaskState.TASK_STATE_COMPLETED
    with OpenAI(base_url=f"{web.origin}/v1", api_key=TOKEN, max_retries=0, timeout=120) as openai:
        said = openai.responses.create(
            model="iterate", input="Thank you.", extra_headers={"X-Septet-Chat": task.context_id}
        )
        assert task.context_id in said.output_text
    septet = Septet(web.home)
    shown = septet("show", task.context_id)
    assert shown.returncode == 0, shown.stderr
    assert "greet" in shown.stdout
    exported = septet("export", task.context_id, "--format", "jsonl").stdout
    assert kinds([msgspec.json.decode(line) for line in exported.splitlines()]).count("plan_approved") == 1


def test_begun_in_a_folder_by_mcp_is_answered_and_delivered_by_the_command_line(tmp_path: Path) -> None:
    """By stdio a client may name a folder; what it builds there waits for whoever delivers it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine\n")
    home = tmp_path / "home"
    call = {"name": "build", "arguments": {"goal": "greet", "folder": str(folder)}}
    opening = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    septet = Septet(home)
    with subprocess.Popen(
        [*septet.command, "mcp", "serve", "-m", QUICK],
        env=septet.environment,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for line in lines:
            server.stdin.write(msgspec.json.encode(line) + b"\n")
            server.stdin.flush()
        answer = next(one for one in map(msgspec.json.decode, server.stdout) if one.get("id") == 2)
        server.stdin.close()
    chat = answer["result"]["structuredContent"]["chat"]
    answered = septet("resume", chat, "yes")
    assert answered.returncode == 4, "it waits for somebody who writes it"
    assert f"septet deliver {chat}" in answered.stderr
    assert not (folder / "hello.py").exists()
    delivered = septet("deliver", chat, "--yes")
    assert delivered.returncode == 0, delivered.stderr
    assert (folder / "hello.py").exists()
