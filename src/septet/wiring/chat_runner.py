"""Conducts chats in the background and stores what the person says to them, for every surface that serves chats."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from math import inf
from pathlib import Path
from time import time
from typing import Self

import anyio
import msgspec
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from msgspec.structs import replace

from septet.agents.ask import Live, live_topic
from septet.agents.person import AnsweredElsewhere, question
from septet.chat.results import awaited_question
from septet.common.values import Value
from septet.domain.events import ChatEnded, Event, PersonSpoke, Recorded, StopRequested, TurnOpened
from septet.domain.reduce import reduce
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage, Conflict, SeptetError, as_septet_error, innermost
from septet.ports import Agent, BusMessage, EventStore, Record, Sandbox
from septet.runtime.log import Log
from septet.settings.group_chats import without_models
from septet.settings.team_files import check_word
from septet.team.questions import read_answer
from septet.ways.table import as_much_again
from septet.wiring.session import Session

LIVE_DECODER = msgspec.json.Decoder(Live)
Item = Recorded | Live
"""What a follower of a chat gets: a stored event, or a piece of text while it is generated."""


def person_on_any_surface(store: EventStore) -> Agent:
    """An agent for the person that waits until the person answers, on whatever surface."""

    async def turn(state: State, record: Record) -> None:
        if question(state) is None or state.stop_requested:
            return
        async for recorded in store.watch(state.chat, state.seq):
            state = reduce(state, recorded)
            if question(state) is None or state.stop_requested:
                raise AnsweredElsewhere

    return turn


IDLE_SECONDS = 30.0
"""Seconds without a new event after which no other process can be conducting the chat."""


class ConductorStatus(Value, omit_defaults=False):
    """Whether this server conducts a chat, and the error that prevents it."""

    chat: str
    conducted: bool = False
    pausing: bool = False
    reached: int = 0
    """The newest event that was recorded while this server conducted the chat: later ones come from elsewhere."""
    trouble: str = ""
    remedy: str = ""


@asynccontextmanager
async def unwatched(state: State) -> AsyncGenerator[None]:
    yield


def ignore(status: ConductorStatus) -> None:
    """Nobody is told."""


class RunningChat:
    """One chat being conducted. `turns` is how many turns may still start; None means no limit."""

    def __init__(self, turns: int | None) -> None:
        self.scope = anyio.CancelScope()
        self.finished = anyio.Event()
        self.turns = turns

    def take_turn(self) -> bool:
        if self.turns is None:
            return True
        self.turns -= 1
        return self.turns >= 0


class PastRun(msgspec.Struct, frozen=True):
    """How far a chat has come here, and the error that ended its last run."""

    reached: int = 0
    error: SeptetError | None = None


NEVER_RUN = PastRun()
MAX_PAST_RUNS = 1000


class ChatRunner:
    """Conducts chats in the background; keeps the error of each for its page."""

    def __init__(
        self,
        session: Session,
        tasks: TaskGroup,
        watch: Callable[[State], AbstractAsyncContextManager[None]] = unwatched,
        on_change: Callable[[ConductorStatus], None] = ignore,
    ) -> None:
        """`watch` is open while a chat is conducted; `on_change` is told each time its status changes."""
        self._session = session
        self._tasks = tasks
        self._watch = watch
        self._on_change = on_change
        self._running: dict[str, RunningChat] = {}
        self._past: dict[str, PastRun] = {}
        """How chats went that ran here, those that ended last at the end."""
        self._sandbox: Sandbox | None = None

    def status(self, chat: str) -> ConductorStatus:
        running, past = self._running.get(chat), self._past.get(chat)
        error = past.error if past else None
        return ConductorStatus(
            chat=chat,
            conducted=running is not None,
            pausing=running is not None and running.turns is not None,
            reached=past.reached if past else 0,
            trouble=error.cause if error else "",
            remedy=error.remedy if error else "",
        )

    def error(self, chat: str) -> SeptetError | None:
        """The error that ended the chat's last run here."""
        past = self._past.get(chat)
        return past.error if past else None

    def start(self, state: State, one_turn: bool = False) -> None:
        """Conduct the chat from its current state, unless we do already. Starting and resuming are the same."""
        running = self._running.get(state.chat)
        if running is not None:
            running.turns = 1 if one_turn else None
        elif state.ended is None:
            opened = state.floor.turn is not None and not state.floor.turn.closed
            running = RunningChat((0 if opened else 1) if one_turn else None)
            self._running[state.chat] = running
            self._note(state.chat, error=None)
            self._tasks.start_soon(self._run, state, running)
        self.broadcast_status(state.chat)

    def pause(self, chat: str) -> None:
        """Let the current turn end, and start no other."""
        if running := self._running.get(chat):
            running.turns = 0
            self.broadcast_status(chat)

    async def wait_until_finished(self, chat: str) -> None:
        """Wait until the conductor of a chat that has ended has cleaned up."""
        if running := self._running.get(chat):
            await running.finished.wait()

    async def cancel(self, chat: str) -> None:
        """Stop conducting at once; the chat can be resumed."""
        if running := self._running.get(chat):
            running.scope.cancel()
            await running.finished.wait()

    async def stop(self, state: State, last_change: float) -> None:
        """End the chat now if no other process conducts it; otherwise its conductor ends it after the turn."""
        store, ours = self._session.store, state.chat in self._running
        await store.append(state.chat, StopRequested(), after=None)
        await self.cancel(state.chat)
        if ours or time() - last_change > IDLE_SECONDS:
            log = await Log.open(store, state.chat)
            if log.state.ended is None:
                await log.record(ChatEnded(reason="stopped", detail="stopped by the person"))

    async def _run(self, state: State, running: RunningChat) -> None:
        try:
            async with self._watch(state):
                with running.scope:
                    await self._run_turns(state.chat, running)
        except Conflict as conflict:
            self._note(state.chat, error=Conflict(conflict.cause, "watch and steer it here"))
        except Exception as error:  # one chat's defect must not end the server and the other chats
            self._note(state.chat, error=as_septet_error(error))
            if not isinstance(innermost(error), SeptetError):
                logging.getLogger("septet").exception("a chat could not go on")
        finally:
            del self._running[state.chat]
            running.finished.set()
            self.broadcast_status(state.chat)

    def _note(self, chat: str, **changes: int | SeptetError | None) -> None:
        """Note it of the chat; of the error without its frames, which would keep the whole chat in memory."""
        past = self._past[chat] = replace(self._past.pop(chat, NEVER_RUN), **changes)
        if past.error is not None:
            past.error.__traceback__ = past.error.__context__ = past.error.__cause__ = None
        if len(self._past) > MAX_PAST_RUNS:
            del self._past[next(iter(self._past))]

    async def sandbox(self) -> Sandbox:
        """Return the sandbox of all chats. Raises NoSandbox if there is none."""
        self._sandbox = self._sandbox or await self._session.sandbox()
        return self._sandbox

    async def _run_turns(self, chat: str, running: RunningChat) -> None:
        sandbox = await self.sandbox()
        restart = True
        while restart:
            try:
                await self._run_until_answered(chat, sandbox, running)
                restart = False
            except AnsweredElsewhere:
                continue

    async def _run_until_answered(self, chat: str, sandbox: Sandbox, running: RunningChat) -> None:
        person = person_on_any_surface(self._session.store)
        async with aclosing(self._session.perform(chat, sandbox, person)) as events:
            async for recorded in events:
                self._note(chat, reached=recorded.seq)
                if isinstance(recorded.event, TurnOpened) and not running.take_turn():
                    return

    def broadcast_status(self, chat: str) -> None:
        """Send the status to all watchers, so that they show the same controls."""
        self._on_change(self.status(chat))


class Items:
    """What happens in a chat, for one follower. Waiting for the next item can be cancelled and repeated."""

    def __init__(
        self, received: MemoryObjectReceiveStream[Item], error: Callable[[], SeptetError | None]
    ) -> None:
        self._received = received
        self._error = error

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        """Raises the error that stopped the team, after the last item."""
        try:
            return await self._received.receive()
        except anyio.EndOfStream:
            error = self._error()
            if error is None or isinstance(error, Conflict):
                raise StopAsyncIteration from None
            raise type(error)(error.cause, error.remedy) from None


def team_for_person(team: TeamSpec, yes: bool = False) -> TeamSpec:
    """The team of a chat with somebody at hand: packages are asked about; with `yes`, nothing is asked."""
    packages = "ask" if team.packages == "off" and not yes else team.packages
    return replace(team, approve="auto" if yes else team.approve, packages=packages)


class ChatService:
    """What a surface offers on the chats of a session: start one, say something in it, follow it, stop it."""

    def __init__(
        self,
        session: Session,
        runner: ChatRunner,
        model: str = "",
        state: Callable[[str], Awaitable[State]] | None = None,
    ) -> None:
        self.session = session
        self.runner = runner
        self.model = model
        self.state = state or session.state
        """The newest state of a chat."""
        self._followers: dict[str, int] = {}

    async def team(self, name: str, model: str = "") -> TeamSpec:
        """A team by its name, with models. Raises BadUsage for an unknown one."""
        session = self.session
        name = check_word(name or session.default_team, list(session.teams), "team", "a new chat")
        known = session.teams[name]
        return await session.with_models(without_models(known) if model else known, model or self.model)

    async def start(self, goal: str, team: TeamSpec, workspace: Path | None = None, name: str = "") -> State:
        """Store a new chat, which `follow` or the runner conducts."""
        await self.runner.sandbox()  # raises before a chat is started in which nothing could run
        return await self.state(await self.session.start(goal, team, workspace, name))

    async def say(self, state: State, text: str, to: str = "") -> None:
        """A message: the answer if the team asks a question, else an instruction for the next turn."""
        await self.record(state, self.interpret(state, text, to))

    async def record(
        self, state: State, events: Sequence[Event], resume: bool = False, one_turn: bool = False
    ) -> None:
        """Store what the person did. The team continues if it waited for that or is to `resume`; after an end, with
        its budget raised by the team's.
        """
        waits = question(state) is not None
        if state.ended is not None:
            await self.runner.wait_until_finished(state.chat)
        for event in events:
            await self._append(state, event)
        if state.ended is not None:
            await self.session.reopen(state.chat, as_much_again(state, state.team.budget))
        if state.ended is not None or waits or resume:
            self.runner.start(await self.state(state.chat), one_turn)

    def interpret(self, state: State, text: str, to: str = "") -> tuple[Event, ...]:
        if not text.strip():
            raise BadUsage("the message is empty", "type something")
        if to:
            names = [member.name for member in state.team.members]
            return (PersonSpoke(text=text.strip(), to=check_word(to, names, "member", state.chat)),)
        asked = question(state) if state.ended is None else None
        return read_answer(state, asked, text)

    async def _append(self, state: State, event: Event) -> None:
        if isinstance(event, StopRequested):
            await self.stop(state)
        else:
            await self.session.store.append(state.chat, event, after=None)

    async def stop(self, state: State) -> None:
        if state.ended is not None:
            return
        heads = {head.chat: head for head in await self.session.store.chats()}
        await self.runner.stop(state, heads[state.chat].changed)

    @asynccontextmanager
    async def follow(self, state: State) -> AsyncGenerator[Items]:
        """Let the team continue, and yield what happened since `state` until it asks the person or the chat ends.

        The items raise the error that stops the team. Who leaves early pauses the chat, unless somebody else follows
        it here: nothing stored is lost, and following it again continues it.
        """
        chat = state.chat
        send, receive = anyio.create_memory_object_stream[Item](inf)
        self._followers[chat] = self._followers.get(chat, 0) + 1
        try:
            async with (
                self.session.bus.subscribe(live_topic(chat)) as pieces,
                anyio.create_task_group() as tasks,
            ):
                newest = await self.state(chat)
                if awaited_question(newest) is None:
                    self.runner.start(newest)
                tasks.start_soon(self._feed, state, pieces, send)
                with receive:
                    yield Items(receive, lambda: self.runner.error(chat))
                tasks.cancel_scope.cancel()
        finally:
            self._followers[chat] -= 1
            if not self._followers[chat]:
                del self._followers[chat]
                await self._pause(chat)

    async def _feed(
        self, state: State, pieces: AsyncIterator[BusMessage], send: MemoryObjectSendStream[Item]
    ) -> None:
        """Send what is generated and what is stored, until the team asks or its conductor here is gone."""
        with send:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen, pieces, send)
                tasks.start_soon(self._wait_for_runner, state.chat, tasks.cancel_scope)
                if awaited_question(state) is not None:
                    tasks.cancel_scope.cancel()
                async for recorded in self.session.store.watch(state.chat, state.seq):
                    state = reduce(state, recorded)
                    offer(send, recorded)
                    if awaited_question(state) is not None:
                        tasks.cancel_scope.cancel()
            for recorded in await self.session.store.read(state.chat, state.seq):
                if awaited_question(state) is None:
                    state = reduce(state, recorded)
                    offer(send, recorded)

    async def _listen(self, pieces: AsyncIterator[BusMessage], send: MemoryObjectSendStream[Item]) -> None:
        async for piece in pieces:
            with suppress(msgspec.MsgspecError):
                offer(send, LIVE_DECODER.decode(piece.message))

    async def _wait_for_runner(self, chat: str, scope: anyio.CancelScope) -> None:
        await self.runner.wait_until_finished(chat)
        if not isinstance(self.runner.error(chat), Conflict):  # else another process conducts it: watch
            scope.cancel()

    async def _pause(self, chat: str) -> None:
        with anyio.CancelScope(shield=True):
            state = await self.state(chat)
            if state.ended is None and awaited_question(state) is None:
                await self.runner.cancel(chat)
            elif state.ended is not None:
                await self.runner.wait_until_finished(chat)


@asynccontextmanager
async def open_chat_service(session: Session, model: str = "") -> AsyncGenerator[ChatService]:
    """Run chats in the background until the surface closes; all of them can be resumed."""
    async with anyio.create_task_group() as tasks:
        yield ChatService(session, ChatRunner(session, tasks), model)
        tasks.cancel_scope.cancel()


def offer(send: MemoryObjectSendStream[Item], item: Item) -> None:
    """Send an item, unless who followed has just left: what is about to be cancelled may come to this once more."""
    with suppress(anyio.BrokenResourceError):
        send.send_nowait(item)
