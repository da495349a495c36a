"""Logs that no team would write by itself: long ones and hostile ones."""

from collections.abc import Iterable
from pathlib import Path

import anyio.from_thread
from msgspec.structs import replace

from septet.domain.events import ChatEnded, ChatStarted, Event, ModelAnswered, TurnOpened
from septet.domain.talk import Answer, Usage
from septet.settings.homes import Home
from septet.team.teams import TEAMS
from septet.wiring.session import open_session

TEAM = replace(TEAMS["iterate"], approve="auto")


def seed(home: Path, chat: str, events: Iterable[Event]) -> None:
    """Write a log as if it had happened, from a loop in another thread: a browser's may be running in ours."""

    async def write() -> None:
        place = Home(data=home, config=home / "config", cache=home / "cache")
        async with open_session(place) as session, anyio.create_task_group() as tasks:
            for event in events:
                tasks.start_soon(session.store.append, chat, event, None)

    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(write)


def started(goal: str, home: Path) -> ChatStarted:
    return ChatStarted(goal=goal, team=TEAM, workspace=str(home / "work" / "seeded"))


def said(role: str, text: str) -> tuple[TurnOpened, ModelAnswered]:
    answer = Answer(text=text, model="seeded", usage=Usage(prompt=100, completion=20), cost=0.001)
    return TurnOpened(speaker=role), ModelAnswered(role=role, answer=answer)


def over() -> ChatEnded:
    return ChatEnded(reason="stopped", detail="stopped by the person")
