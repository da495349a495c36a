"""The time that a chat has left bounds everything that a member waits for."""

import socket
from pathlib import Path

import anyio
import pytest
from cli.commands import SCRIPTS
from models.raw_server import EVENTS, Body, drops, nothing, raw_server
from msgspec.structs import replace

from septet.agents.ask import request_of
from septet.chat.results import status
from septet.domain.messages import Message
from septet.domain.state import State
from septet.domain.teams import Budget, TeamSpec
from septet.errors import ModelFailed
from septet.models.wrappers.retry import RetryPolicy
from septet.settings.home import Home
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock
from septet.ways.table import TEAMS
from septet.wiring.models import Models
from septet.wiring.session import open_session, with_model

pytestmark = pytest.mark.anyio
PATIENCE = 120
"""Much more than the second that a chat has, much less than any other bound of what it waits for."""
PLAN = "1. It waits\n   check: command python wait.py => x\nrun: python wait.py\n"
CODE = "```python wait.py\nimport time\n\ntime.sleep(300)\n```\n"


def hurried(model: str, seconds: float = 1.0) -> TeamSpec:
    team = replace(TEAMS["iterate"], approve="auto", budget=Budget(seconds=seconds))
    return with_model(replace(team, limits=replace(team.limits, seconds=300)), model)


async def performed(tmp_path: Path, team: TeamSpec) -> str:
    """How the chat ended, in words."""
    home = Home(data=tmp_path / "home", config=tmp_path / "config", cache=tmp_path / "cache")
    async with open_session(home) as session:
        sandbox = await session.sandbox()
        chat = await session.start("wait", team, tmp_path / "work", "waiting")
        with anyio.fail_after(PATIENCE):
            async for _ in session.perform(chat, sandbox):
                pass
        return status(await session.state(chat))


@pytest.mark.parametrize("body", [nothing, drops])
async def test_a_server_that_never_comes_to_an_end_is_given_up(tmp_path: Path, body: Body) -> None:
    async with raw_server(EVENTS, body) as server:
        told = await performed(tmp_path, hurried(f"url:{server.url}#m"))

    assert (
        told
        == "stopped unfinished, a bound was reached (the time budget of 1 s passed before the planner was done)"
    )


async def test_a_server_that_is_away_is_not_asked_again_when_that_would_be_too_late(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ModelFailed, match="no connection"):
        await performed(tmp_path, hurried(f"url:http://127.0.0.1:{port}/v1#m", 5.0))


async def test_a_program_that_runs_on_is_given_up(tmp_path: Path) -> None:
    async with serve_mock(in_order(Reply(text=PLAN), Reply(text=CODE))) as server:
        told = await performed(tmp_path, hurried(f"url:{server.url}#m", 15.0))

    assert "the time budget of 15 s passed before the runner was done" in told


async def test_packages_that_never_come_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = replace(TEAMS["pair"], approve="auto", packages="auto", budget=Budget(seconds=15.0))
    async with raw_server(b"Content-Type: text/html\r\n", nothing) as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        told = await performed(tmp_path, with_model(team, f"scripted:{SCRIPTS / 'emoji.yaml'}"))

    assert "the time budget of 15 s passed before the runner was done" in told
    assert index.asked


async def test_an_answer_that_takes_longer_than_its_member_may_is_asked_for_again(tmp_path: Path) -> None:
    team = replace(TEAMS["writer-editor"], budget=Budget(rounds=1))
    writer = replace(team.members[0], timeout=0.2)
    team = replace(team, members=(writer, *team.members[1:]))
    async with raw_server(EVENTS, nothing) as server:
        home = Home(data=tmp_path / "home", config=tmp_path / "config", cache=tmp_path / "cache")
        async with Models(home, retry=RetryPolicy(attempts=2, first_wait=0.01)) as models:
            model = models.open((f"url:{server.url}#m",))
            request = request_of(writer, State(team=team), (Message(role="user", text="write"),))
            with (
                anyio.fail_after(PATIENCE),
                pytest.raises(ModelFailed, match=r"no complete answer within 0\.2 s"),
            ):
                async for _ in model.answer(request):
                    pass
    assert server.asked == 2
