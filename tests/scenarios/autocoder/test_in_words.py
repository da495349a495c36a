"""The autocoder and the assistant over a real server that knows no tool calls: everything goes in words."""

import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from anyio import to_thread
from cli.commands import Septet, envelopes

from septet.demos.catalogue import DICTIONARY, load_demo, write_demo_files
from septet.models.providers.scripted import ScriptedTurn, fill_in, turn_text
from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import serve_mock
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio

ROLES = {
    "You are the planner": "planner",
    "You are the coder": "coder",
    "You are the reviewer": "reviewer",
    "You are the user proxy": "proxy",
    "You are the code assistant": "assistant",
}


class Actor:
    """Plays a demo's script over the wire: calls become blocks of text."""

    def __init__(self, name: str) -> None:
        self.turns = load_demo(name).turns
        self.taken: Counter[str] = Counter()
        self.troubles: list[str] = []

    def __call__(self, seen: ReceivedRequest) -> Reply:
        told = "\n".join(str(message["content"]) for message in seen.messages)
        role = next(role for head, role in ROLES.items() if head in told)
        turn = [turn for turn in self.turns if turn.role == role][self.taken[role]]
        self.taken[role] += 1
        if turn.expect not in told:
            self.troubles.append(f"{turn.expect} is not in {told}")
        pieces = {
            name: found[1] for name, pattern in turn.take.items() if (found := re.search(pattern, told))
        }
        return Reply(text=fill_in(spoken(turn), pieces), piece=400)


def spoken(turn: ScriptedTurn) -> str:
    wishes = [{"name": call.name, "arguments": call.arguments} for call in turn.calls]
    blocks = [f"```tool\n{msgspec.json.encode(wish).decode()}\n```" for wish in wishes]
    return "\n\n".join(filter(None, [turn_text(turn), *blocks]))


@pytest.mark.torture
async def test_an_autocoder_without_tool_calls(septet: Septet, tmp_path: Path) -> None:
    script = load_demo("hello")
    await write_demo_files(Workspace(tmp_path / "project"), script)
    actor = Actor("hello")
    async with serve_mock(actor, features=frozenset()) as server:
        model = f"url:{server.url}#mock"
        args = ("run", script.goal, "-t", "autocoder", "-m", model, "-C", "project", "--json", "-q")
        done = await to_thread.run_sync(lambda: septet(*args))
    assert actor.troubles == []
    assert done.returncode == 0, done.stderr
    assert envelopes(done.stdout)[-1]["status"] == "done"
    assert "tools" not in server.seen[-1].fields
    told = [str(message["content"]) for seen in server.seen for message in seen.messages]
    assert any("```tool" in text for text in told)


@pytest.mark.torture
async def test_an_assistant_without_tool_calls(septet: Septet, tmp_path: Path) -> None:
    assert septet("demo", "ctr", "-q").returncode == 0
    log = septet.home / "demo" / "impressions.csv"
    (tmp_path / "columns.txt").write_text("".join(f"{name}: {text}\n" for name, text in DICTIONARY.items()))
    actor = Actor("ctr")
    async with serve_mock(actor, features=frozenset()) as server:
        model = f"url:{server.url}#mock"
        data = ("--data", str(log), "--dictionary", "columns.txt")
        args = ("run", load_demo("ctr").goal, *data, "-m", model, "--json", "-q")
        done = await to_thread.run_sync(lambda: septet(*args))
    assert actor.troubles == []
    assert done.returncode == 0, done.stderr
    assert "3.937 %" in str(envelopes(done.stdout)[-1]["answer"])
    assert any("Result of call_2" in str(message["content"]) for message in server.seen[-3].messages)
