"""A recorded chat gives the same log once more, or the first event that differs."""

from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from team.states import chat, planned

from septet.agents.person import present
from septet.domain.codec import encode
from septet.domain.events import ModelAnswered, PersonSpoke, Recorded, TurnOpened
from septet.errors import BadUsage
from septet.settings.home import Home
from septet.team.questions import Question
from septet.ways.table import TEAMS
from septet.wiring.replay import first_difference, is_persons, read_log, replay_chat
from septet.wiring.session import Session, open_session, with_model

pytestmark = pytest.mark.anyio
PLAN = "1. double gives twice the number\n   check: example app.double(2) => 4\n"
RIGHT = "```python app.py\ndef double(n):\n    return 2 * n\n```"
WRONG = "```python app.py\ndef double(n):\n    return 2 + n + 1\n```"


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session]:
    home = Home(data=tmp_path / "home", config=tmp_path / "config", cache=tmp_path / "cache")
    async with open_session(home) as opened:
        yield opened


async def record(session: Session, folder: Path) -> list[Recorded]:
    turns = [
        {"role": "planner", "say": PLAN},
        {"role": "coder", "say": f"Done.\n{RIGHT}"},
        {"role": "reviewer", "say": "verdict: accept\n"},
    ]
    script = folder / "script.json"
    script.write_bytes(msgspec.json.encode({"turns": turns}))
    team = with_model(replace(TEAMS["iterate"], keepsakes=()), f"scripted:{script}")
    name = await session.start("double a number", team, folder / "work")

    async def approve(_question: Question) -> str:
        return "sounds good"

    async for _ in session.perform(name, await session.sandbox(), present(approve)):
        pass
    return await session.log(name)


async def test_a_recorded_chat_gives_the_same_log_and_another_answer_is_the_first_difference(
    session: Session, tmp_path: Path
) -> None:
    log = await record(session, tmp_path)
    file = tmp_path / "chat.jsonl"
    file.write_bytes(b"".join(encode(one) + b"\n" for one in log))
    sandbox = await session.sandbox()
    same = await replay_chat(session, sandbox, read_log(file), tmp_path / "same")
    assert same.difference is None
    assert same.events > 10

    changed = [with_answer(one, WRONG) for one in log]
    other = await replay_chat(session, sandbox, changed, tmp_path / "other")
    assert other.difference is not None
    assert other.difference.was.startswith("version_written")
    assert other.difference.was != other.difference.now


def with_answer(recorded: Recorded, text: str) -> Recorded:
    event = recorded.event
    if not isinstance(event, ModelAnswered) or event.role != "coder":
        return recorded
    return replace(recorded, event=replace(event, answer=replace(event.answer, text=text)))


def test_the_first_event_that_differs_is_named() -> None:
    events = planned()
    assert first_difference(events, events) is None
    other = [*events[:3], TurnOpened(speaker="coder"), *events[4:]]
    found = first_difference(events, other)
    assert found is not None
    assert (found.event, found.now.partition(" ")[0]) == (4, "turn_opened")
    shorter = first_difference(events, events[:-1])
    assert shorter is not None
    assert (shorter.event, shorter.now) == (len(events), "nothing")
    assert [is_persons(one) for one in (PersonSpoke(text="hi"), events[-1], events[1])] == [True, True, False]
    assert chat(events).goal


async def test_a_chat_on_files_of_the_person_is_not_replayed(session: Session, tmp_path: Path) -> None:
    log = [Recorded(chat="c", seq=1, at=0.0, event=replace(planned()[0], existing=True))]
    with pytest.raises(BadUsage, match="files of yours"):
        await replay_chat(session, await session.sandbox(), log, tmp_path / "x")
