"""Replays a recorded chat offline with the same answers and the same person, and finds the first event that differs."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
from msgspec.structs import replace

from septet.common.documents import read_text
from septet.common.values import Value
from septet.domain.codec import decode, encode
from septet.domain.events import (
    BaseSurveyed,
    ChatContinued,
    ChatEnded,
    ChatHalted,
    ChatStarted,
    EnvironmentProbed,
    Event,
    FactsChanged,
    ModelAnswered,
    PackagesDecided,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    Recorded,
    RunFinished,
    SnapshotTaken,
    StepGranted,
    StopRequested,
    TurnOpened,
    WorkAccepted,
)
from septet.domain.pytest_report import TestReport
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage, SeptetError
from septet.ports import Record, Sandbox
from septet.ways.table import thinkers
from septet.wiring.session import Session
from septet.workspace.files import Workspace, in_thread

SHOWN = 400
UNREPEATED = ChatHalted | BaseSurveyed | EnvironmentProbed
"""Events that are about the machine, and not about what the team did."""


class Difference(Value, omit_defaults=False):
    """The first event that differs: its number, and its old and new form; empty if that log has ended."""

    event: int
    was: str
    now: str


class ReplayResult(Value, omit_defaults=False):
    events: int
    difference: Difference | None = None


def is_persons(event: Event) -> bool:
    """Whether the event is a message or decision of the person."""
    match event:
        case PlanApproved(by=by) | PlanProposed(by=by) | FactsChanged(by=by) | PackagesDecided(by=by):
            return by == "person"
        case PersonSpoke() | StepGranted() | WorkAccepted() | StopRequested() | ChatContinued():
            return True
        case _:
            return False


def comparable(events: Iterable[Event]) -> list[Event]:
    """The comparable part of an event, without paths, times and program output, which may contain the time."""
    return [essence(one) for one in events if not isinstance(one, UNREPEATED)]


def essence(event: Event) -> Event:
    match event:
        case ChatStarted(team=team):
            return replace(event, workspace="", team=replace(team, members=()), facts=(), own_facts=())
        case ModelAnswered(answer=answer):
            return replace(event, prompt="", answer=replace(answer, seconds=0.0))
        case RunFinished(result=result):
            return replace(event, result=comparable_result(result))
        case SnapshotTaken():
            return replace(event, folder="")
        case _:
            return event


def comparable_result(result: RunResult) -> RunResult:
    tests = result.tests and TestReport(cases=tuple(replace(one, seconds=0.0) for one in result.tests.cases))
    changes = tuple(replace(one, sha256="", size=0) for one in result.changes)
    return RunResult(exit_code=result.exit_code, stopped_by=result.stopped_by, changes=changes, tests=tests)


def first_difference(before: Sequence[Event], after: Sequence[Event]) -> Difference | None:
    old, new = comparable(before), comparable(after)
    for number, (was, now) in enumerate(zip(old, new, strict=False), start=1):
        if was != now:
            return Difference(event=number, was=in_short(was), now=in_short(now))
    if len(old) == len(new):
        return None
    number = min(len(old), len(new))
    was = in_short(old[number]) if len(old) > number else "nothing"
    now = in_short(new[number]) if len(new) > number else "nothing"
    return Difference(event=number + 1, was=was, now=now)


def in_short(event: Event) -> str:
    text = encode(Recorded(chat="c", seq=1, at=0.0, event=event)).decode()
    kind, _, data = text.partition('"type":"septet.')[2].partition('"')
    words = data.partition('"data":')[2]
    return f"{kind} {words[:SHOWN]}"


class Player:
    """Repeats the person's messages of the recorded chat in the new one, each at its position."""

    def __init__(self, session: Session, chat: str, events: Sequence[Event]) -> None:
        self.session = session
        self.chat = chat
        self.events = [one for one in events if not isinstance(one, UNREPEATED)]
        self.place = 0
        """How many events of the recorded chat the new one has reached."""

    async def turn(self, state: State, record: Record) -> Event | None:
        """The person's turn: record all messages of the recorded turn."""
        said: list[Event] = []
        for event in self.events[self.place :]:
            if isinstance(event, TurnOpened | ChatEnded):
                break
            if is_persons(event):
                said.append(event)
        for event in said[:-1]:
            await record(event)
        return said[-1] if said else None

    async def follow(self, recorded: Recorded) -> None:
        """Count one more event, and record messages that the person sent then outside a turn of their own."""
        if isinstance(recorded.event, UNREPEATED):
            return
        self.place += 1
        while self.place < len(self.events) and is_persons(following := self.events[self.place]):
            if self.in_own_turn():
                return
            self.place += 1
            await self.session.append(self.chat, following)

    def in_own_turn(self) -> bool:
        """Whether the recorded chat was in a turn of the person at that event."""
        first = self.events[0]
        person = first.team.person if isinstance(first, ChatStarted) else ""
        opened = [one for one in self.events[: self.place] if isinstance(one, TurnOpened | ChatEnded)]
        return bool(opened) and isinstance(opened[-1], TurnOpened) and opened[-1].speaker == person


async def replay_chat(
    session: Session,
    sandbox: Sandbox,
    log: Sequence[Recorded],
    folder: Path,
    files: Mapping[str, str] | None = None,
) -> ReplayResult:
    """Replay the chat in its own folder, which begins with these files; a replay that diverges ends there."""
    started = log[0].event if log else None
    if not isinstance(started, ChatStarted):
        raise BadUsage("that log does not begin with a chat", "export one: septet export NAME --format jsonl")
    if started.existing or started.data:
        raise BadUsage(
            "that chat worked on files of yours, which may have changed since", "replay one that began empty"
        )
    recording = anyio.Path(folder / "recording.jsonl")
    await recording.parent.mkdir(parents=True, exist_ok=True)
    await recording.write_bytes(b"".join(encode(one) + b"\n" for one in log))
    team = with_recording(started.team, f"replay:{recording}")
    chat = await session.start(started.goal, team, folder / "work")
    await write_files(Workspace(folder / "work"), files or {})
    player = Player(session, chat, [one.event for one in log])
    for recorded in await session.log(chat):
        await player.follow(recorded)
    try:
        await play(session, sandbox, player)
    except SeptetError as error:
        if error.cause.startswith("the recording"):  # the difference shows where it diverged
            pass
        elif not isinstance(log[-1].event, ChatHalted):
            raise
    new = await session.log(chat)
    difference = first_difference([one.event for one in log], [one.event for one in new])
    return ReplayResult(events=len(comparable(one.event for one in new)), difference=difference)


async def write_files(workspace: Workspace, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        await in_thread(partial(workspace.create, path, text.encode()))


async def play(session: Session, sandbox: Sandbox, player: Player) -> None:
    """Run to the end, and again if the person continued the recorded chat after an end."""
    while True:
        before = player.place
        async for recorded in session.perform(player.chat, sandbox, player.turn):
            await player.follow(recorded)
        state = await session.state(player.chat)
        if state.ended is not None or player.place == before:
            return


def read_log(path: Path) -> list[Recorded]:
    """Read the events of a JSONL export; the last `result` line of `--json` is not an event."""
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    return [decode(line) for line in lines if not line.startswith('{"type":"result"')]


def with_recording(team: TeamSpec, model: str) -> TeamSpec:
    thinking = {one.name for one in thinkers(team)}
    members = [replace(one, model=(model,)) if one.name in thinking else one for one in team.members]
    return replace(team, members=tuple(members))
