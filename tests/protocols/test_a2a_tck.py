"""A2A's compatibility kit against our agent: long, and its repository must be here, so by hand (`just torture`).

SEPTET_A2A_TCK names a checkout of a2aproject/a2a-tck, branch 1.0-dev. What the kit wants its agent to do is said by
the beginning of a message's id: here that chooses a team with a scripted model, and the chats are real ones.
"""

import os
import re
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
import pytest
from a2a.helpers.proto_helpers import new_text_message
from a2a.server.context import ServerCallContext
from a2a.types.a2a_pb2 import Message as A2AMessage
from a2a.types.a2a_pb2 import SendMessageRequest, Task
from msgspec.structs import replace
from protocols.suites import served
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from septet.domain.teams import TeamSpec
from septet.protocols.a2a_server import ChatTasks, open_a2a_endpoint
from septet.ways.table import TEAMS, thinkers
from septet.web.app_state import AppState, LazyEndpoint

ANSWER = """
turns:
- role: proxy
  calls:
  - name: SendMessage
    arguments: {{recipient: assistant, message: Answer.}}
- role: assistant
  say: '{0}'
- role: proxy
  say: '{0}'
"""
ASK = (
    "turns:\n"
    + "- role: planner\n  say: |\n    1. It works\n       check: tests test_a.py\n    run: python a.py\n" * 8
)
FILE = """
turns:
- role: planner
  say: |
    1. It prints the text
       check: command python show.py => text
    run: python show.py
- role: coder
  say: It prints the file.
  files:
    output.txt: '{0}'
    show.py: |
      print(open("output.txt").read())
- role: reviewer
  say: 'verdict: accept'
"""


CONTRADICTED = (
    "test_must_requirement[CORE-SEND-003-jsonrpc]",
    "test_must_requirement[CORE-SEND-003-http_json]",
)
"""They send a part of an unknown media type and want success; the requirement wants an error, as another test does."""


class Behaviour(NamedTuple):
    team: str
    script: str


BEHAVIOURS: Mapping[str, Behaviour] = {
    "tck-artifact-text": Behaviour("assistant", ANSWER.format("Generated text content")),
    "tck-artifact-data": Behaviour("assistant", ANSWER.format('{"key": "value", "count": 42}')),
    "tck-artifact-file-url": Behaviour("iterate", FILE.format("text " * 20_000)),
    "tck-artifact-file": Behaviour("iterate", FILE.format("text")),
    "tck-input-required": Behaviour("plan", ASK),
    "tck-": Behaviour("assistant", ANSWER.format("Hello from TCK")),
}
"""By the beginning of a message's id."""


class TalkingTasks(ChatTasks):
    """The kit also wants an agent that answers without a task, which ours never does."""

    async def on_message_send(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> Task | A2AMessage:
        if params.message.message_id.startswith("tck-message-response"):
            return new_text_message("Direct message response")
        return await super().on_message_send(params, context)


def scripted_teams(folder: Path) -> dict[str, TeamSpec]:
    teams: dict[str, TeamSpec] = {}
    for prefix, behaviour in BEHAVIOURS.items():
        script = folder / f"{prefix.strip('-')}.yaml"
        script.write_text(behaviour.script)
        team = TEAMS[behaviour.team]
        thinking = {one.name for one in thinkers(team)}
        members = tuple(
            replace(one, model=(f"scripted:{script}",)) if one.name in thinking else one
            for one in team.members
        )
        teams[prefix] = replace(team, name=prefix, members=members)
    return teams


def directed(body: bytes) -> bytes:
    """The same request, with the team that behaves as the message's id wants; where it wants an end, with a yes."""
    try:
        request = msgspec.json.decode(body)
        message = request["params"]["message"] if "params" in request else request["message"]
        wanted = next(prefix for prefix in BEHAVIOURS if message["messageId"].startswith(prefix))
    except (msgspec.MsgspecError, KeyError, TypeError, StopIteration):
        return body
    message.setdefault("metadata", {"team": wanted, "yes": BEHAVIOURS[wanted].team == "iterate"})
    if message.get("taskId") and message["messageId"].startswith("tck-complete-task"):
        message["parts"] = [{"text": "yes"}]
    return msgspec.json.encode(request)


def with_behaviours(app: ASGIApp) -> ASGIApp:
    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        async def read() -> Message:
            message = await receive()
            while message.get("more_body"):
                more = await receive()
                message = {**more, "body": message["body"] + more.get("body", b"")}
            return {**message, "body": directed(message["body"])} if message.get("body") else message

        await app(scope, read, send)

    return call


@pytest.mark.torture
@pytest.mark.anyio
async def test_every_mandatory_requirement_is_met(tmp_path: Path) -> None:
    kit = os.environ.get("SEPTET_A2A_TCK", "")
    if not kit:
        pytest.skip("SEPTET_A2A_TCK does not name a checkout of a2a-tck")
    python = tmp_path / "venv" / "bin" / "python"
    await anyio.run_process([sys.executable, "-m", "venv", str(tmp_path / "venv")])
    made = await anyio.run_process([str(python), "-m", "pip", "install", "-q", "-e", kit], check=False)
    if made.returncode:
        pytest.skip(f"what the kit needs cannot be fetched ({made.stderr.decode()[-200:]})")

    def prepare(state: AppState) -> None:
        state.session.teams = {**state.session.teams, **scripted_teams(tmp_path)}
        opening = partial(open_a2a_endpoint, operations=TalkingTasks)
        state.a2a = LazyEndpoint("a2a", lambda: opening, state.service, state.tasks)

    async with served(tmp_path / "home", "scripted:demo/hello", prepare, with_behaviours) as url:
        command = [str(python), "run_tck.py", "--sut-host", url, "--", "-rfs"]
        done = await anyio.run_process(command, cwd=kit, check=False)
    text = done.stdout.decode()
    failed = re.findall(r"^FAILED \S+::(\S+)", text, re.MULTILINE)
    assert set(failed) <= set(CONTRADICTED), text[-8000:]
    assert re.search(r"\d+ failed, 1[78]\d passed", text), text[-200:]
