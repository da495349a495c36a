"""The members of the coder–runner pair: manager and coder with a model, the runner with the sandbox."""

from collections.abc import AsyncGenerator

from septet.agents.asking import ask
from septet.agents.runner import Bench
from septet.agents.speaking import kept
from septet.domain.events import Event, ReplyRefused, RunStarted, SpeakerChosen, Terminated, VersionWritten
from septet.domain.files import main_of, tree_of
from septet.domain.plans import Refusal
from septet.domain.replies import code_files
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Blobs, Bus, Model
from septet.team.graph import PAIR, candidates, failed
from septet.team.pairing import Choice, pair_briefing, parse_manager


def managing(member: RoleSpec, model: Model, bus: Bus) -> Agent:
    """Gives the task, chooses who goes on, and alone may end the chat. A bad choice is repaired once."""

    async def turn(state: State) -> AsyncGenerator[Event, None]:
        if state.turn is None or state.turn.settled:
            return
        if state.turn.answers:
            said = state.turn.answers[-1]
        else:
            said = await ask(member, model, bus, state, pair_briefing(member, state))
            yield said
        yield managed(member, state, said.answer.text)

    return turn


def managed(member: RoleSpec, state: State, text: str) -> Event:
    legal = candidates(PAIR, state)
    read = parse_manager(text, legal)
    if isinstance(read, Terminated):
        unproven = not state.runs or failed(state)
        read = (
            Refusal(reason="the newest run did not succeed, so the task is not resolved")
            if unproven
            else read
        )
    if isinstance(read, Choice):
        return SpeakerChosen(speaker=read.speaker)
    if isinstance(read, Terminated):
        return read
    if state.refused is not None and state.refused.role == member.name:
        return SpeakerChosen(speaker=legal[0], fallback=True)
    return ReplyRefused(role=member.name, reason=read.reason)


def pairing(member: RoleSpec, model: Model, bus: Bus, blobs: Blobs) -> Agent:
    """The coder: a plan first, then code; the newest block is what the runner runs."""

    async def turn(state: State) -> AsyncGenerator[Event, None]:
        if state.turn is None or state.turn.settled:
            return
        if state.turn.answers:
            said = state.turn.answers[-1]
        else:
            said = await ask(member, model, bus, state, pair_briefing(member, state))
            yield said
        if (event := await coded(member, state, said.answer.text, blobs)) is not None:
            yield event

    return turn


async def coded(member: RoleSpec, state: State, text: str, blobs: Blobs) -> Event | None:
    """The first message may be words only; after that code is due."""
    before = {file.path: file for file in (state.version.files if state.version else ())}
    sent = code_files(text, only="main.py")
    if isinstance(sent, Refusal):
        planning = state.version is None and state.turns.get(member.name, 0) == 1
        return None if planning else ReplyRefused(role=member.name, reason=sent.reason)
    files = {**before, **{file.path: await kept(file, blobs) for file in sent}}
    ordered = tuple(files[path] for path in sorted(files))
    return VersionWritten(number=len(state.versions) + 1, files=ordered, tree=tree_of(ordered))


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
