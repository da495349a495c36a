"""A member's own budget, from the team file to the end of the chat, over real sockets."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from septet.chat.results import summary, turn_spending_text
from septet.cli.progress import footer_text
from septet.domain.events import ModelAnswered
from septet.domain.messages import Usage
from septet.domain.reduce import fold
from septet.errors import BadUsage
from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import serve_mock
from septet.wiring.api import Team

pytestmark = pytest.mark.anyio

TEAM = """\
members:
- role: planner
- {role: coder, budget: {tokens: 2500, cost: 1.5, seconds: 600}}
- role: runner
- role: reviewer
- role: proxy
budget: {rounds: 8, seconds: 900}
"""
PLAN = "1. add(a, b) gives the sum\n   check: command python add.py => 5"
REVIEW = "verdict: revise\n- [must] P1 (add.py:1): it prints the wrong number"


def script(seen: ReceivedRequest) -> Reply:
    """A coder that never gets it right, each time in another way; every answer is 1000 tokens."""
    usage = Usage(prompt=800, cached=600, completion=200)
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
    async with (
        serve_mock(script) as server,
        Team.load(str(tmp_path / "team.yaml"), model=f"url:{server.url}#m", unsafe_local=True) as team,
    ):
        log = [recorded async for recorded in team.run("add numbers", workspace=tmp_path / "work")]
    state = fold(log)
    assert state.ended is not None
    assert state.ended.reason == "bound"
    why = "the coder's token budget is too small for its next turn: 2,000 of 2,500 used, about 1,000 needed"
    assert state.ended.detail == why
    asked = [one.event.role for one in log if isinstance(one.event, ModelAnswered)]
    assert asked.count("coder") == 2
    assert len(server.seen) == len(asked)
    assert team.result.members["coder"].usage == Usage(prompt=1600, cached=1200, completion=400)
    assert "coder     2 answers · 1600 + 400 tokens (1200 cached) of 2500 · $0.0000 of 1.5" in summary(state)
    working = next(
        fold(log[:at])
        for at, one in enumerate(log, start=1)
        if isinstance(one.event, ModelAnswered) and one.event.role == "coder"
    )
    assert turn_spending_text(working) in footer_text(working)
    assert re.search(r" · \d+/900 s · ", footer_text(working))
    assert re.match(r"coder 1000/2500 tokens \$0.0000/1.5 \d+/600 s", turn_spending_text(working))


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (
            "tokens: 200",
            r"the coder's token budget is too small for its next turn: 0 of 200 used, about [\d,]{3,} needed",
        ),
        (
            "cost: 0.0001",
            r"the coder's cost budget of \$0.0001 is too small .*: \$0.0001 left, about \$0.00\d+ needed",
        ),
    ],
)
async def test_not_even_a_members_first_answer_exceeds_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, why: str
) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    (tmp_path / "team.yaml").write_text(TEAM.replace("tokens: 2500, cost: 1.5", limit))
    async with serve_mock(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        async with Team.load(str(tmp_path / "team.yaml"), model="openai/gpt-4o", unsafe_local=True) as team:
            log = [one async for one in team.run("add numbers", workspace=tmp_path / "work")]
    state = fold(log)
    assert state.ended is not None
    assert state.ended.reason == "bound"
    assert re.search(why, state.ended.detail)
    assert [one.event.role for one in log if isinstance(one.event, ModelAnswered)] == ["planner"]
    assert len(server.seen) == 1


UNKNOWN = "openai/nonsense-9"


async def worked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: str, url: str) -> Team:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    (tmp_path / "team.yaml").write_text(TEAM.replace(", cost: 1.5", "").replace("rounds: 8", budget))
    async with Team.load(str(tmp_path / "team.yaml"), model=UNKNOWN, unsafe_local=True) as team:
        async for _ in team.run("add numbers", workspace=tmp_path / "work"):
            pass
    return team


async def test_a_bound_on_the_cost_of_a_model_without_a_price_is_refused_before_anything_is_bought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_mock(script) as server:
        with pytest.raises(BadUsage, match=f"the price of {UNKNOWN} is unknown") as refused:
            await worked(tmp_path, monkeypatch, "cost: 5", server.url)

    assert "--price IN/OUT" in refused.value.remedy
    assert server.seen == []


async def test_with_a_price_that_the_person_says_the_bound_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer is 800 tokens in and 200 out: 0.0012 dollars."""
    async with serve_mock(script) as server:
        budget = "cost: 0.003, price: {prompt: 1, completion: 2}"
        team = await worked(tmp_path, monkeypatch, budget, server.url)

    assert team.result.status == "bound"
    assert team.result.detail.startswith("the cost budget ")
    assert team.result.cost == pytest.approx(0.0012 * len(server.seen))


async def test_a_server_that_claims_to_give_tokens_back_does_not_defeat_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lying(seen: ReceivedRequest) -> Reply:
        return replace(script(seen), usage=Usage(prompt=-1_000_000, completion=-1))

    async with serve_mock(lying) as server:
        team = await worked(tmp_path, monkeypatch, "tokens: 2600", server.url)

    assert team.result.status == "bound"
    assert "of 2,600 used" in team.result.detail
    assert team.result.usage.estimated
    assert 0 < team.result.usage.total < 4000
