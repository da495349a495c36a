"""A2A's own client gives tasks to the team, answers it, watches it again, and gets what was made; over a socket."""

import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import msgspec
import pytest
from a2a.client import ClientConfig, create_client
from a2a.client.client import Client
from a2a.helpers.proto_helpers import new_text_message
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import Parse
from polling import poll
from web.serving import Web

QUICK = f"scripted:{Path(__file__).parent.parent / 'scripts' / 'quick.yaml'}"
TOKEN = "a-token-of-the-tests"


@contextmanager
def served(folder: Path, model: str) -> Generator[Web]:
    (folder / "token").write_text(TOKEN)
    web = Web(folder / "home", model, 0, "--token-file", str(folder / "token"))
    web.token = TOKEN
    try:
        yield web
    finally:
        web.stop()


@asynccontextmanager
async def connected(web: Web, binding: str = "JSONRPC", streaming: bool = True) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(headers=headers, timeout=120) as http:
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding], streaming=streaming)
        yield await create_client(web.origin, config)


def words(text: str, task: str = "", context: str = "", **metadata: str | float) -> SendMessageRequest:
    message = new_text_message(text, role=Role.ROLE_USER, task_id=task, context_id=context)
    message.metadata.update(metadata)
    return SendMessageRequest(message=message)


async def turn(client: Client, request: SendMessageRequest) -> list[StreamResponse]:
    return [response async for response in client.send_message(request)]


def last_state(responses: list[StreamResponse]) -> TaskState:
    states = [one.status_update.status.state for one in responses if one.HasField("status_update")]
    return states[-1] if states else responses[0].task.status.state


@pytest.mark.anyio
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_another_agent_gives_a_task_answers_it_and_gets_the_program(
    tmp_path: Path, binding: str
) -> None:
    with served(tmp_path, QUICK) as web:
        async with connected(web, binding) as client:
            asked = await turn(client, words("greet"))
            assert last_state(asked) == TaskState.TASK_STATE_INPUT_REQUIRED
            task = asked[0].task
            assert "Approve this plan?" in asked[-1].status_update.status.message.parts[0].text
            agree = words("yes", task.id)
            built = await turn(client, agree)
            assert last_state(built) == TaskState.TASK_STATE_COMPLETED
            assert last_state(await turn(client, agree)) == TaskState.TASK_STATE_COMPLETED, "it is taken once"
            made = {
                one.artifact_update.artifact.artifact_id for one in built if one.HasField("artifact_update")
            }
            assert made == {"program", "report"}
            found = await client.get_task(GetTaskRequest(id=task.id))
            files = {part.filename: part.raw for part in artifact(found, "program")}
            assert b'return "hello"' in files["hello.py"]
            assert [one.parts[0].text for one in found.history if one.role == Role.ROLE_USER] == [
                "greet",
                "yes",
            ]
            with pytest.raises(A2AError):
                await turn(client, words("more", task.id))
            more = await turn(client, words("another", context=task.context_id))
            assert more[0].task.id == f"{task.context_id}.2"
            listed = await client.list_tasks(ListTasksRequest())
            assert [one.id for one in listed.tasks] == [f"{task.context_id}.2"]
            (other, *_) = await turn(client, words("greet"))
            await see_pages(client, [other.task.id, f"{task.context_id}.2"])
            card = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
            assert "iterate" in [skill.id for skill in card.skills]
        assert web.get(f"/api/chats/{task.context_id}").status == 200, "the page has the same chat"


async def see_pages(client: Client, newest_first: list[str]) -> None:
    """Both tasks wait for an answer."""
    first = await client.list_tasks(ListTasksRequest(page_size=1))
    assert [one.id for one in first.tasks] == newest_first[:1]
    assert (first.page_size, first.total_size) == (1, 2)
    rest = await client.list_tasks(ListTasksRequest(page_size=1, page_token=first.next_page_token))
    assert [one.id for one in rest.tasks] == newest_first[1:]
    assert rest.next_page_token == ""
    whole = await client.list_tasks(ListTasksRequest(page_size=2))
    assert ([one.id for one in whole.tasks], whole.next_page_token) == (newest_first, "")
    waiting = await client.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_INPUT_REQUIRED))
    assert [one.id for one in waiting.tasks] == newest_first
    assert waiting.page_size == 50
    over = await client.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_COMPLETED))
    assert (over.tasks, over.total_size) == ([], 0)
    chat = newest_first[1].rpartition(".")[0]
    assert [one.id for one in (await client.list_tasks(ListTasksRequest(context_id=chat))).tasks] == [
        newest_first[1]
    ]


def artifact(task: Task, name: str) -> list[Part]:
    (found,) = [one for one in task.artifacts if one.artifact_id == name]
    return list(found.parts)


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


@pytest.mark.anyio
async def test_a_task_goes_on_without_its_client_is_watched_again_and_cancelled(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(SLOW)
    with served(tmp_path, f"scripted:{tmp_path / 'slow.yaml'}") as web:
        async with connected(web) as client:
            task = (await anext(aiter(client.send_message(words("wait", yes=True))))).task
        async with connected(web) as client:
            async for response in client.subscribe(SubscribeToTaskRequest(id=task.id)):
                made = [*response.task.artifacts, response.artifact_update.artifact]
                if "program" in [one.artifact_id for one in made]:
                    break
            cancelled = await client.cancel_task(CancelTaskRequest(id=task.id))
            assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
            with pytest.raises(A2AError):
                await client.cancel_task(CancelTaskRequest(id=task.id))
            with pytest.raises(A2AError):
                await anext(client.subscribe(SubscribeToTaskRequest(id=task.id)))


@pytest.mark.anyio
async def test_a_yes_to_a_question_that_others_have_answered_is_no_yes_to_the_next(tmp_path: Path) -> None:
    with served(tmp_path, QUICK) as web:
        async with connected(web) as client:
            asked = await turn(client, words("greet"))
            task, seen = asked[0].task, float(str(asked[-1].status_update.metadata["seen"]))
            await turn(client, words("Please shorter.", task.id))
            late = await turn(client, words("yes", task.id, seen=seen))
            assert last_state(late) == TaskState.TASK_STATE_INPUT_REQUIRED
            found = await client.get_task(GetTaskRequest(id=task.id))
            said = [one.parts[0].text for one in found.history if one.role == Role.ROLE_USER]
            assert said == ["greet", "Please shorter."]


class Hook(BaseHTTPRequestHandler):
    """Takes notifications; fails once, as services do."""

    received: list[tuple[str, StreamResponse]]
    failures: list[int]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.failures:
            self.send_response(self.failures.pop())
        else:
            self.received.append((self.headers["authorization"], Parse(body, StreamResponse())))
            self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as its parent's
        """Nothing is printed."""


@contextmanager
def hook() -> Generator[tuple[str, list[tuple[str, StreamResponse]]]]:
    received: list[tuple[str, StreamResponse]] = []
    handler = type("Handler", (Hook,), {"received": received, "failures": [503]})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", received
        server.shutdown()


@pytest.mark.anyio
async def test_notifications_come_in_order_even_after_a_restart_of_the_server(tmp_path: Path) -> None:
    with hook() as (url, received):
        with served(tmp_path, QUICK) as web:
            async with connected(web, streaming=False) as client:
                request = words("greet")
                request.configuration.CopyFrom(SendMessageConfiguration(return_immediately=True))
                config = request.configuration.task_push_notification_config
                config.url, config.authentication.scheme, config.authentication.credentials = (
                    url,
                    "Bearer",
                    "mine",
                )
                (first,) = await turn(client, request)

                async def is_asked() -> bool:
                    return bool(received) and received[-1][1].status_update.status.state == (
                        TaskState.TASK_STATE_INPUT_REQUIRED
                    )

                await poll(is_asked)
            web.kill()
            web.restart()
            async with connected(web) as client:
                await turn(client, words("yes", first.task.id))

                async def is_done() -> bool:
                    return received[-1][1].status_update.status.state == TaskState.TASK_STATE_COMPLETED

                await poll(is_done)
                for wrong in ("ftp://x", "http://", "x"):
                    bad = TaskPushNotificationConfig(task_id=first.task.id, url=wrong)
                    with pytest.raises(A2AError):
                        await client.create_task_push_notification_config(bad)
        assert {name for name, _ in received} == {"Bearer mine"}
        kept = tmp_path / "home" / "a2a-push.json"
        assert kept.stat().st_mode & 0o077 == 0


def test_strangers_and_wrong_requests_get_the_errors_of_the_binding(tmp_path: Path) -> None:
    with served(tmp_path, QUICK) as web:
        card = web.ask("GET", "/.well-known/agent-card.json", b"", {})
        assert card.status == 200, "who has no token learns that one is wanted"
        assert b"schemes" in card.body
        assert web.ask("GET", "/.well-known/agent-card.json", b"", {"Host": "evil.example"}).status == 421
        bearer = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "A2A-Version": "1.0",
        }
        strangers: list[tuple[dict[str, str], int]] = [
            ({}, 401),
            ({**bearer, "Authorization": "Bearer wrong"}, 401),
            ({**bearer, "Origin": "https://evil.example"}, 403),
            ({**bearer, "Host": "evil.example"}, 421),
        ]
        for headers, status in strangers:
            for path in ("/a2a", "/a2a/tasks", "/a2a/message:send"):
                answer = web.ask("POST", path, b"{}", headers)
                assert (answer.status, "error" in answer.json()) == (status, True)
        for body, code in RPC_BODIES:
            answer = web.ask("POST", "/a2a", body, bearer)
            assert answer.status < 500
            assert msgspec.json.decode(answer.body)["error"]["code"] == code, (body[:200], answer)
        for version in ("", "0.3", "9.9", "x"):
            answer = web.ask("POST", "/a2a", rpc("ListTasks"), {**bearer, "A2A-Version": version})
            assert msgspec.json.decode(answer.body)["error"]["code"] == -32009
        for method, path, body in REST_REQUESTS:
            answer = web.ask(method, path, body, bearer)
            assert 400 <= answer.status < 500, (method, path, answer)
            assert "error" in answer.json()
        assert web.ask("POST", "/a2a", b"{}", {**bearer, "Content-Type": "text/plain"}).status == 415
        assert web.get("/api/chats").body == b"[]", "none of them has begun a chat"


def rpc(method: str, **params: object) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def message(**given: object) -> dict[str, object]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}], **given}}


RPC_BODIES: list[tuple[bytes, int]] = [
    (b"{", -32700),
    (b"\xff", -32700),
    (b"[" * 100_000, -32700),
    (b" " * 1_100_000, -32600),
    (b"[]", -32600),
    (b'"x"', -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}', -32600),
    (rpc("no/such"), -32601),
    (rpc("message/send", **message()), -32601),
    (rpc("SendMessage"), -32602),
    (rpc("SendMessage", message=3), -32602),
    (rpc("SendMessage", **message(parts=[])), -32602),
    (rpc("SendMessage", **message(parts=[{"text": "  "}])), -32602),
    (rpc("SendMessage", **message(parts=[{"text": "x\0"}])), -32602),
    (rpc("SendMessage", **message(parts=[{"raw": "eA==", "mediaType": "image/png"}])), -32005),
    (rpc("SendMessage", **message(parts=[{"url": "file:///etc/passwd"}])), -32005),
    (rpc("SendMessage", **message(taskId="nobody.1")), -32001),
    (rpc("SendMessage", **message(contextId="../../etc")), -32602),
    (rpc("SendMessage", **message(metadata={"team": "nobody"})), -32602),
    (rpc("GetTask", id="nobody.1"), -32001),
    (rpc("GetTask", id="a'; drop table events;--.1"), -32001),
    (rpc("GetTask", id="x" * 100_000), -32001),
    (rpc("GetTask", id="x.99999999999999999999"), -32001),
    (rpc("SubscribeToTask", id="nobody.1"), -32001),
    (rpc("CancelTask", id=""), -32602),
    (rpc("ListTasks", pageSize=100_000), -32602),
    (rpc("ListTasks", pageToken="nonsense"), -32602),
]
REST_REQUESTS: list[tuple[str, str, bytes]] = [
    ("GET", "/a2a/tasks/nobody.1", b""),
    ("GET", "/a2a/tasks?pageSize=many", b""),
    ("GET", "/a2a/tasks?pageToken=x", b""),
    ("POST", "/a2a/message:send", b"{"),
    ("POST", "/a2a/message:send", b"{}"),
    ("POST", "/a2a/message:stream", b"[" * 100_000),
    ("POST", "/a2a/tasks/nobody.1:cancel", b""),
    ("GET", "/a2a/tasks/nobody.1:subscribe", b""),
    ("DELETE", "/a2a/tasks/nobody.1", b""),
    ("PUT", "/a2a", b""),
    ("GET", "/a2a/no/such/place/at/all", b""),
]
