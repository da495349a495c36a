"""Logs that no team would write by itself: long ones and hostile ones."""

from collections.abc import Iterable
from pathlib import Path

import anyio.from_thread
from msgspec.structs import replace

from septet.domain.events import (
    BudgetReached,
    ChatEnded,
    ChatHalted,
    ChatStarted,
    Event,
    ExampleGiven,
    FactsChanged,
    ModelAnswered,
    PackagesDecided,
    PackagesInstalled,
    PackagesWanted,
    RunFinished,
    SpeakerChosen,
    Terminated,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
)
from septet.domain.facts import FactsChange
from septet.domain.files import FileChange
from septet.domain.messages import Answer, Usage
from septet.domain.packages import Installation, MissingPackages
from septet.domain.runs import RunResult
from septet.domain.teams import Allowance, Budget, RoleSpec, TeamSpec
from septet.settings.home import Home
from septet.ways.table import TEAMS
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


PAIR = TeamSpec(
    name="ours",
    members=(
        RoleSpec(name="manager", role="manager", title="Mo"),
        RoleSpec(
            name="coder", role="coder", title="Ada", budget=Allowance(tokens=2000, cost=0.5, seconds=60)
        ),
        RoleSpec(name="runner", role="runner"),
        RoleSpec(name="exemplar", role="exemplar"),
    ),
    floor="pair",
    budget=Budget(rounds=30, tokens=10_000),
)
EXAMPLE = ExampleGiven(
    failure="ZeroDivisionError: division by zero",
    code="def mean(numbers):\n    return sum(numbers) / len(numbers) if numbers else 0.0\n",
    source="chat mean-k3f",
    title="an empty list has a mean too",
)
ARGUMENTS = '{"path": "mean.py", "text": "def mean(numbers):\\n    return sum(numbers)", "lines": 2}'


def group_talk(home: Path) -> list[Event]:
    """A pair with names of their own, and everything that a group does beside talking and running."""
    usage = Usage(prompt=1500, cached=900, completion=100)
    wrote = Answer(text="Here is the mean.", model="seeded", usage=usage, cost=0.02, seconds=4.0)
    change = FileChange(path="mean.py", kind="new", size=64, sha256="")
    ran = RunResult(exit_code=0, stdout="2.5\n", seconds=2.0)
    return [
        ChatStarted(goal="a mean of numbers", team=PAIR, workspace=str(home / "work" / "group")),
        *said("manager", "Ada, write it."),
        SpeakerChosen(speaker="coder"),
        TurnOpened(speaker="coder"),
        ModelAnswered(role="coder", answer=wrote),
        ToolCalled(id="1", by="coder", name="write_file", arguments=ARGUMENTS),
        ToolAnswered(id="1", text="2 lines", changes=(change,)),
        ToolCalled(id="2", by="coder", name="lint", arguments="not JSON"),
        ToolAnswered(id="2", text="the arguments are no JSON object", failed=True),
        FactsChanged(
            by="coder", change=FactsChange(add=("numbers may be empty",), drop=("Python 2 is needed",))
        ),
        TurnOpened(speaker="exemplar"),
        EXAMPLE,
        TurnOpened(speaker="runner"),
        PackagesWanted(missing=MissingPackages(distributions=("numpy",))),
        PackagesDecided(names=("numpy",), allowed=True, always=True),
        PackagesInstalled(
            installation=Installation(installed=("numpy",), seconds=3.25, output="Resolved 1 package")
        ),
        RunFinished(id="1", purpose="run", command="python mean.py", tree="", result=ran),
        ChatHalted(cause="openai refused the key (401)", remedy="septet keys set openai"),
        SpeakerChosen(speaker="manager", fallback=True),
        Terminated(summary="the mean of 1 to 4 is 2.5"),
        BudgetReached(by="coder", why="the coder's token budget is too small for its next turn"),
        ChatEnded(reason="bound", detail="the coder's token budget is too small for its next turn"),
    ]
