"""Chats of one session: each has a name of its own, whatever the goal, and many may run at once."""

import re
from pathlib import Path

import pytest
from anyio import create_task_group

from septet.chat import names
from septet.domain.events import ChatEnded
from septet.domain.runs import Job
from septet.settings.home import find_home
from septet.ways.table import TEAMS
from septet.wiring.api import Team
from septet.wiring.forks import fork_chat
from septet.wiring.session import open_session, with_model

pytestmark = pytest.mark.anyio

TALK = """floor: group_chat
budget: {rounds: 1}
members:
- {role: writer, name: writer}
"""
WORDS = "turns:\n- {role: writer, say: one}\n"


async def test_chats_of_one_goal_never_collide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With two letters there are eight names of three letters: the ninth chat has to have another."""
    monkeypatch.setattr(names, "LETTERS", "ab")
    team = with_model(TEAMS["writer-editor"], "scripted:demo/hello")
    found: set[str] = set()
    async with open_session(find_home({"SEPTET_HOME": str(tmp_path)})) as session:
        for _ in range(20):
            found.add(await session.start("a clock", team, None))
        forks = {await fork_chat(session, "clock-" + re.escape(sorted(found)[0][6:])) for _ in range(4)}
    assert len(found | forks) == 24


async def test_many_runs_at_once_on_a_fresh_home_all_finish(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    (tmp_path / "team.yaml").write_text(TALK)
    (tmp_path / "words.yaml").write_text(WORDS)
    ended: list[str] = []

    async def run(team: Team, number: int) -> None:
        events = team.run("the same goal for all", workspace=tmp_path / "many" / str(number))
        ended.extend([one.event.reason async for one in events if isinstance(one.event, ChatEnded)])

    async with (
        Team.load(str(tmp_path / "team.yaml"), model=f"scripted:{tmp_path / 'words.yaml'}") as team,
        create_task_group() as group,
    ):
        for number in range(8):
            group.start_soon(run, team, number)
        for _ in range(4):
            group.start_soon(team.sandbox.run, Job(workspace=str(tmp_path), command=("true",)))
    assert ended == ["rounds"] * 8
    assert (tmp_path / "home" / "sandboxes" / "bubblewrap").exists(), "the next start need not check again"
