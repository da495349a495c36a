"""A member's own budget, from the team file to the end of the chat, over real sockets."""

from pathlib import Path

import pytest

from septet.chat.expenses import spent_now
from septet.chat.reports import summary
from septet.cli.live import footer
from septet.domain.events import ModelAnswered, Recorded
from septet.domain.reduce import fold
from septet.domain.talk import Usage
from septet.testing.replies import Reply, Seen
from septet.testing.server import serving
from septet.wiring.api import Team

pytestmark = pytest.mark.anyio

TEAM = """\
members:
- role: planner
- {role: coder, budget: {tokens: 250, cost: 1.5, seconds: 600}}
- role: runner
- role: reviewer
- role: proxy
budget: {rounds: 8, seconds: 900}
"""
PLAN = "1. add(a, b) gives the sum\n   check: command python add.py => 5"
REVIEW = "verdict: revise\n- [must] P1 (add.py:1): it prints the wrong number"


def script(seen: Seen) -> Reply:
    """A coder that never gets it right, each time in another way; every answer is 100 tokens."""
    usage = Usage(prompt=80, cached=60, completion=20)
    told = str(seen.messages[0]["content"])
    if "planner" in told.split(".", maxsplit=1)[0]:
        return Reply(text=PLAN, usage=usage)
    if "reviewer" in told.split(".", maxsplit=1)[0]:
        return Reply(text=REVIEW, usage=usage)
    return Reply(text=f"F1: fixed.\n\n```python add.py\nprint({seen.number})\n```", usage=usage)


async def test_the_chat_stops_before_the_call_that_a_members_budget_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    (tmp_path / "team.yaml").write_text(TEAM)
    log: list[Recorded] = []
    async with (
        serving(script) as server,
        Team.load(str(tmp_path / "team.yaml"), model=f"url:{server.url}#m", unsafe_local=True) as team,
    ):
        async for recorded in team.run("add numbers", workspace=tmp_path / "work"):
            log.append(recorded)  # noqa: PERF401  # one by one, as they come
    state = fold(log)
    assert state.ended is not None
    assert state.ended.reason == "bound"
    assert state.ended.detail == "the coder's 250 tokens would not do for its next turn (200 are used)"
    asked = [one.event.role for one in log if isinstance(one.event, ModelAnswered)]
    assert asked.count("coder") == 2
    assert len(server.seen) == len(asked)
    assert team.result.members["coder"].usage == Usage(prompt=160, cached=120, completion=40)
    assert "coder     2 answers · 160 + 40 tokens (120 cached) of 250 · $0.0000 of 1.5" in summary(state)
    working = next(
        fold(log[:at])
        for at, one in enumerate(log, start=1)
        if isinstance(one.event, ModelAnswered) and one.event.role == "coder"
    )
    assert spent_now(working) in footer(working)
    assert " · 0/900 s · " in footer(working)
    assert spent_now(working).startswith("coder 100/250 tokens $0.0000/1.5 0/600 s")
