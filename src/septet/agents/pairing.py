"""The members of the coder–runner pair: manager and coder with a model, the runner with the sandbox."""

from collections.abc import AsyncGenerator

from septet.agents.runner import Bench
from septet.agents.speaking import Brief, kept, saying
from septet.domain.events import Event, RunStarted, SpeakerChosen, Terminated, VersionWritten
from septet.domain.files import main_of, tree_of
from septet.domain.plans import Refusal
from septet.domain.replies import code_files
from septet.domain.state import State
from septet.domain.talk import Message
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Blobs, Bus, Model
from septet.team.graph import PAIR, candidates, failed
from septet.team.pairing import Choice, pair_briefing, parse_manager


def managing(member: RoleSpec, model: Model, bus: Bus) -> Agent:
    """Gives the task, chooses who goes on, and alone may end the chat. A bad choice is repaired once."""

    async def settle(state: State, text: str) -> Event | Refusal:
        return managed(member, state, text)

    return saying(member, model, bus, briefed(member), settle)


def briefed(member: RoleSpec) -> Brief:
    async def brief(state: State) -> tuple[Message, ...]:
        return pair_briefing(member, state)

    return brief


def managed(member: RoleSpec, state: State, text: str) -> Event | Refusal:
    legal = candidates(PAIR, state)
    read = parse_manager(text, legal)
    if isinstance(read, Terminated) and (not state.runs or failed(state)):
        read = Refusal(reason="the newest run did not succeed, so the task is not resolved")
    if isinstance(read, Choice):
        return SpeakerChosen(speaker=read.speaker)
    repaired = state.refused is not None and state.refused.role == member.name
    return SpeakerChosen(speaker=legal[0], fallback=True) if isinstance(read, Refusal) and repaired else read


def pairing(member: RoleSpec, model: Model, bus: Bus, blobs: Blobs) -> Agent:
    """The coder: a plan first, then code; the newest block is what the runner runs."""

    async def settle(state: State, text: str) -> Event | Refusal | None:
        """The first message may be words only; after that code is due."""
        before = {file.path: file for file in (state.version.files if state.version else ())}
        sent = code_files(text, only="main.py")
        if isinstance(sent, Refusal):
            planning = state.version is None and state.turns.get(member.name, 0) == 1
            return None if planning else sent
        files = {**before, **{file.path: await kept(file, blobs) for file in sent}}
        ordered = tuple(files[path] for path in sorted(files))
        return VersionWritten(number=len(state.versions) + 1, files=ordered, tree=tree_of(ordered))

    return saying(member, model, bus, briefed(member), settle)


def running_newest(member: RoleSpec, bench: Bench) -> Agent:
    """The runner: runs what the coder sent last, once."""

    async def turn(state: State) -> AsyncGenerator[Event, None]:
        version = state.version
        if version is None or state.runs:
            return
        await bench.workspace.show(version.files, bench.blobs, gone=state.stale)
        main = main_of(version.files)
        command = f"python {main.path}" if main else "true"
        number = version.number
        started = RunStarted(id=f"v{number} run", purpose="run", command=command, tree=version.tree)
        yield started
        yield await bench.run(state, member.name, started)

    return turn
