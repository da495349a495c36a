"""MCP's own client drives chats over stdio and streamable HTTP."""

import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Literal

import anyio
import httpx2
import msgspec
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, TextResourceContents
from polling import poll
from web.serving import Web

from septet.errors import Conflict
from septet.settings.home import find_home
from septet.wiring.session import open_session

QUICK = f"scripted:{Path(__file__).parent.parent / 'scripts' / 'quick.yaml'}"
TOKEN = "a-token-of-the-tests"
SLOW = """
turns:
- role: planner
  say: |
    1. It waits
       check: command python wait.py => done
    run: python wait.py
- role: coder
  say: It waits.
  files:
    wait.py: |
      import time
      time.sleep(50)
"""


def command(home: Path, model: str = QUICK) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "septet", "mcp", "serve", "-m", model],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "SEPTET_HOME": str(home / "home")},
        cwd=home,
    )


def content(result: CallToolResult) -> dict[str, object]:
    assert not result.is_error, result
    assert result.structured_content is not None
    return result.structured_content


async def approve(context: object, params: ElicitRequestParams) -> ElicitResult:
    assert "Approve this plan?" in params.message
    return ElicitResult(action="accept", content={"answer": "yes"})


async def text_of(client: Client, uri: str) -> str:
    (found,) = (await client.read_resource(uri)).contents
    assert isinstance(found, TextResourceContents)
    return found.text


@pytest.mark.anyio
async def test_a_client_without_forms_is_told_what_is_awaited_and_answers_by_a_tool(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine\n")
    async with Client(command(tmp_path), read_timeout_seconds=120) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"build", "plan", "ask_code", "run_checks", "status", "answer", "diff", "deliver"}
        assert {prompt.name for prompt in (await client.list_prompts()).prompts} == {"build", "check"}
        asked = content(await client.call_tool("build", {"goal": "greet", "folder": str(folder)}))
        assert asked["status"] == "asks"
        assert "1. It greets" in str(asked["awaits"])
        chat = str(asked["chat"])
        told: list[str] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            told.append(message or "")

        done = content(
            await client.call_tool("answer", {"chat": chat, "text": "yes"}, progress_callback=hear)
        )
        assert (done["status"], done["unproven"]) == ("done", [])
        assert any("✓ P1" in line for line in told)
        assert f"not in {folder} yet: the tool `deliver` writes it" in str(done["text"])
        checked = content(await client.call_tool("run_checks", {"chat": chat}))
        assert (checked["status"], checked["proven"]) == ("met", done["proven"])
        assert checked["text"] == "✓ P1 It greets: 1 passed"
        assert chat in str(content(await client.call_tool("status", {})))
        assert 'return "hello"' in await text_of(client, f"septet://chats/{chat}/versions/1/hello.py")
        assert "done" in await text_of(client, f"septet://chats/{chat}/report")
        assert msgspec.json.decode(await text_of(client, "septet://chats"))[0]["chat"] == chat
        assert "+++ b/hello.py" in str((await client.call_tool("diff", {"chat": chat})).content)
        assert not (folder / "hello.py").exists()
        delivered = content(await client.call_tool("deliver", {"chat": chat}))
        assert f"The program is in {folder}" in str(delivered["text"])
        assert (folder / "hello.py").exists()
        with pytest.raises(MCPError, match="no chat"):
            await client.read_resource("septet://chats/nobody/report")
        wrong = await client.call_tool("deliver", {"chat": "nobody"})
        assert wrong.is_error
        assert "no chat" in str(wrong.content)


@asynccontextmanager
async def connected(web: Web, mode: Literal["auto", "legacy"]) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(
            streamable_http_client(f"{web.origin}/mcp", http_client=http),
            elicitation_callback=approve,
            read_timeout_seconds=120,
            mode=mode,
        ) as client,
    ):
        yield client


@contextmanager
def served(folder: Path, model: str) -> Generator[Web]:
    (folder / "token").write_text(TOKEN)
    web = Web(folder / "home", model, 0, "--token-file", str(folder / "token"))
    web.token = TOKEN
    try:
        yield web
    finally:
        web.stop()


@pytest.mark.anyio
async def test_over_http_the_client_asks_the_person_and_strangers_get_errors_of_the_protocol(
    tmp_path: Path,
) -> None:
    with served(tmp_path, QUICK) as web:
        async with connected(web, "auto") as client:
            done = content(await client.call_tool("build", {"goal": "greet"}))
            assert done["status"] == "done"
            assert (await client.call_tool("build", {"goal": "greet", "folder": str(tmp_path)})).is_error
            checked = content(await client.call_tool("run_checks", {"chat": done["chat"]}))
            assert checked["proven"] == done["proven"]
        async with connected(web, "legacy") as client:
            agreed = content(await client.call_tool("plan", {"goal": "greet"}))
            assert agreed["status"] == "accepted"
        assert web.get(f"/api/chats/{done['chat']}").json()["status"] == "done", "the page has the same chat"
        refuse_strangers(web)


def refuse_strangers(web: Web) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    accept = {**bearer, "Accept": "application/json, text/event-stream"}
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for headers, status in [
        ({}, 401),
        ({**accept, "Authorization": "Bearer wrong"}, 401),
        ({**accept, "Origin": "https://evil.example"}, 403),
        ({**accept, "Host": "evil.example"}, 421),
    ]:
        answer = web.ask("POST", "/mcp", ping, headers)
        assert answer.status == status
        assert "error" in answer.json()
    bodies = [b"", b"{", b"[]", b'"x"', b"\xff", b'{"jsonrpc":"1.0"}', b"[" * 100_000, b" " * (5 << 20)]
    for body in bodies:
        assert 400 <= web.ask("POST", "/mcp", body, accept).status < 500, body[:20]
    assert 400 <= web.ask("POST", "/mcp", ping, {**accept, "MCP-Protocol-Version": "1066"}).status < 500
    assert 400 <= web.ask("PUT", "/mcp", ping, accept).status < 500


@pytest.mark.anyio
async def test_a_cancelled_call_pauses_the_chat_for_others_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(SLOW)
    async with Client(command(tmp_path, f"scripted:{tmp_path / 'slow.yaml'}")) as client:
        with anyio.CancelScope() as scope:

            async def cancel(progress: float, total: float | None, message: str | None) -> None:
                if "version 1" in (message or ""):
                    scope.cancel()

            await client.call_tool("build", {"goal": "wait", "yes": True}, progress_callback=cancel)
        assert scope.cancelled_caught
        async with open_session(find_home({"SEPTET_HOME": str(tmp_path / "home")})) as session:
            (head,) = await session.store.chats()

            async def is_free() -> bool:
                with suppress(Conflict):
                    session.acquire(head.chat)
                    return True
                return False

            await poll(is_free)
            assert (await session.state(head.chat)).ended is None
        assert (await client.list_tools()).tools, "the server goes on"


@pytest.mark.anyio
async def test_a_hostile_client_at_stdin_gets_errors_and_the_server_lives(tmp_path: Path) -> None:
    started = command(tmp_path)
    lines = [
        b"nonsense",
        b'{"jsonrpc":"2.0","id":1,"method":"no/such"}',
        b"\xff\xfe",
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"build","arguments":{"goal":3}}}',
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":3,"method":"ping"' + b" " * (4 << 20) + b"}",
    ]
    errors = tmp_path / "errors.txt"
    with errors.open("wb") as stderr:
        process = await anyio.open_process(
            [started.command, *started.args], env=started.env, cwd=tmp_path, stderr=stderr
        )
    assert process.stdin is not None
    assert process.stdout is not None
    answered, said = set[object](), b""
    with anyio.fail_after(120):
        await process.stdin.send(b"\n".join(lines) + b"\n")
        while not answered >= {1, 2, 3}:
            said += await process.stdout.receive()
            whole, _, said = said.rpartition(b"\n")
            answered |= {msgspec.json.decode(line).get("id") for line in whole.splitlines() if line}
        await process.stdin.aclose()
        assert await process.wait() == 0, errors.read_text()
    assert "Traceback" not in errors.read_text()
