"""Chats of any team in a folder of the person's, over the real store, sandbox and scripted model."""

import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace
from scenarios.autocoder.playing import home_in, team

from septet.domain.events import ChatEnded, Event, Recorded, ReplyRefused, ToolAnswered, VersionWritten
from septet.domain.messages import Request
from septet.domain.reduce import fold
from septet.domain.runs import Limits
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.errors import BadConfig
from septet.wiring.session import open_session, with_model

Turn = Mapping[str, object]
ACCEPT: Turn = {"role": "reviewer", "say": "verdict: accept"}
REVISE: Turn = {"role": "reviewer", "say": "verdict: revise\n- [must] P1 (add.py:2): it is wrong"}
SILENT: Turn = {"role": "planner", "say": "no new requirement"}
"""The last word of each script's planner, if it is asked what the goal says of calls."""
FIXED = "F1: fixed, it is right now."


def script(folder: Path, *turns: Turn) -> str:
    path = folder / "script.yaml"
    path.write_bytes(msgspec.yaml.encode({"turns": [*turns, SILENT]}))
    return f"scripted:{path}"


def plan(run: str, *checks: str) -> Turn:
    items = [f"{number}. It works ({check})\n   check: {check}" for number, check in enumerate(checks, 1)]
    return {"role": "planner", "say": "\n".join([*items, f"run: {run}", ""])}


def code(files: Mapping[str, str], say: str = "Here.", expect: str = "", role: str = "coder") -> Turn:
    return {"role": role, "say": say, "files": dict(files), "expect": expect}


def call(name: str, arguments: Mapping[str, object], expect: str = "", role: str = "coder") -> Turn:
    made = {"reasoning": "it is needed", **arguments} if name != "ExecutePyFile" else dict(arguments)
    return {"role": role, "calls": [{"name": name, "arguments": made}], "expect": expect}


def send(message: str, expect: str = "") -> Turn:
    given = {"recipient": "assistant", "message": message}
    return {"role": "proxy", "calls": [{"name": "SendMessage", "arguments": given}], "expect": expect}


def crew(name: str, rounds: int = 20) -> TeamSpec:
    return replace(team(rounds, name), approve="auto", limits=Limits(seconds=10))


class Played:
    """What is in the log of the chat `c` after it was played, and what the models were told."""

    def __init__(self, events: list[Event], requests: list[Request]) -> None:
        self.events, self.requests = events, requests
        self.told = "\n".join(message.text for request in requests for message in request.messages)

    @property
    def ended(self) -> ChatEnded:
        return next(event for event in reversed(self.events) if isinstance(event, ChatEnded))

    @property
    def refusals(self) -> list[str]:
        refused = [event.reason for event in self.events if isinstance(event, ReplyRefused)]
        return refused + [one.text for one in self.events if isinstance(one, ToolAnswered) and one.failed]

    @property
    def found(self) -> list[VersionWritten]:
        return [event for event in self.events if isinstance(event, VersionWritten) and event.found]


@contextmanager
def said_all() -> Generator[None]:
    """A script that has nothing more to say ends the chat."""
    try:
        yield
    except BadConfig as error:
        if "has no step" not in error.cause:
            raise


async def play(
    folder: Path,
    model: str,
    name: str,
    meanwhile: Callable[[Event], bool | None] = lambda _: None,
    rounds: int = 20,
    unsafe: bool = False,
    goal: str = "do it",
    change: Callable[[TeamSpec], TeamSpec] = lambda spec: spec,
) -> Played:
    """Start or resume the chat `c` in folder/project; `meanwhile` hears each event, and True leaves the chat.

    What it has come to is delivered, proven or not. An `unsafe` chat's programs can leave something behind.
    """
    requests: list[Request] = []
    async with open_session(home_in(folder)) as session:
        session.models.debug_listener = requests.append
        if not await session.log("c"):
            await session.start(goal, with_model(change(crew(name, rounds)), model), folder / "project", "c")
        with said_all():
            async with aclosing(session.perform("c", await session.sandbox(unsafe))) as performance:
                async for recorded in performance:
                    if meanwhile(recorded.event):
                        break
        if (await session.state("c")).base is not None:
            await session.deliver("c")
        return Played([recorded.event for recorded in await session.log("c")], requests)


def fold_events(events: Sequence[Event]) -> State:
    return fold(Recorded(chat="c", seq=seq, at=0.0, event=event) for seq, event in enumerate(events, start=1))


async def undo(folder: Path) -> None:
    async with open_session(home_in(folder)) as session:
        await session.undo("c")


def fill(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository with these files committed, as far as they are not ignored."""
    fill(folder, files)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "base")
    return folder
