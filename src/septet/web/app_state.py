"""The state that all requests share: the session, the chats that run here, their watchers, the list."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from time import time

import anyio
from anyio.abc import TaskGroup

from septet.agents.person import AnsweredElsewhere, question
from septet.chat.search import SearchIndex
from septet.domain.events import ChatEnded, StopRequested, TurnOpened
from septet.domain.presence import HEARTBEAT
from septet.domain.reduce import reduce
from septet.domain.state import State
from septet.errors import Conflict, SeptetError, StoreFailed, as_septet_error, innermost
from septet.ports import Agent, EventStore, Record, Sandbox
from septet.runtime.log import Log
from septet.web.channels import Channel, Channels, ConductorStatus, Frame, Frames, chats_frame, status_frame
from septet.web.chat_view import ChatCache, Summary
from septet.wiring.session import Session


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


class ChatRunner:
    """Conducts chats in the background; keeps the error of each for its page."""

    def __init__(self, session: Session, channels: Channels, tasks: TaskGroup) -> None:
        self._session = session
        self._channels = channels
        self._tasks = tasks
        self._running: dict[str, RunningChat] = {}
        self._errors: dict[str, SeptetError] = {}
        self._sandbox: Sandbox | None = None

    def status(self, chat: str) -> ConductorStatus:
        running = self._running.get(chat)
        error = self._errors.get(chat)
        return ConductorStatus(
            chat=chat,
            conducted=running is not None,
            pausing=running is not None and running.turns is not None,
            trouble=error.cause if error else "",
            remedy=error.remedy if error else "",
        )

    def start(self, state: State, one_turn: bool = False) -> None:
        """Conduct the chat from its current state, unless we do already. Starting and resuming are the same."""
        running = self._running.get(state.chat)
        if running is not None:
            running.turns = 1 if one_turn else None
        elif state.ended is None:
            opened = state.floor.turn is not None and not state.floor.turn.closed
            running = RunningChat((0 if opened else 1) if one_turn else None)
            self._running[state.chat] = running
            self._errors.pop(state.chat, None)
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
            async with self._channels.open(state) as channel:
                try:
                    with running.scope:
                        await self._run_turns(state.chat, running)
                finally:
                    channel.streams.drop_all()
        except Conflict as conflict:
            self._errors[state.chat] = Conflict(conflict.cause, "watch and steer it here")
        except Exception as error:  # one chat's defect must not end the server and the other chats
            self._errors[state.chat] = as_septet_error(error)
            if not isinstance(innermost(error), SeptetError):
                logging.getLogger("septet.web").exception("a chat could not go on")
        finally:
            del self._running[state.chat]
            running.finished.set()
            self.broadcast_status(state.chat)

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
                if isinstance(recorded.event, TurnOpened) and not running.take_turn():
                    return

    def broadcast_status(self, chat: str) -> None:
        """Send the status to all watchers, so that they show the same controls."""
        if channel := self._channels.get(chat):
            channel.broadcast(status_frame(self.status(chat)))


POLL_SECONDS = 1.0
"""Seconds between two polls of the list while a page has it open."""


class ChatListFeed:
    """Sends the chats that changed to every page that has the list open."""

    def __init__(self, chats: ChatCache) -> None:
        self._chats = chats
        self._channel = Channel(State())
        self._sent: dict[str, int] = {}
        self._listeners = 0
        self._wanted = anyio.Event()

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[Frames]:
        self._listeners += 1
        self._wanted.set()
        try:
            async with self._channel.listen() as frames:
                yield frames
        finally:
            self._listeners -= 1

    async def snapshot(self) -> Frame:
        return chats_frame(await self._chats.summaries())

    async def follow(self) -> None:
        while True:
            if not self._listeners:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            with suppress(StoreFailed):  # the store may be back at the next poll; the server must not end
                if changed := self._take_changes(await self._chats.summaries()):
                    self._channel.broadcast(chats_frame(changed))
            await anyio.sleep(POLL_SECONDS)

    def _take_changes(self, summaries: list[Summary]) -> list[Summary]:
        changed = [summary for summary in summaries if self._sent.get(summary.chat) != summary.seq]
        self._sent.update({summary.chat: summary.seq for summary in changed})
        return changed


class AppState:
    def __init__(
        self, session: Session, model: str, channels: Channels, runner: ChatRunner, chats: ChatCache
    ) -> None:
        self.session = session
        self.model = model
        self.channels = channels
        self.runner = runner
        self.chats = chats
        self.chat_list = ChatListFeed(chats)
        self.search_index = SearchIndex(session.store)


@asynccontextmanager
async def open_app_state(session: Session, model: str) -> AsyncGenerator[AppState]:
    """Run chats in the background until the server ends; all of them can be resumed."""
    async with anyio.create_task_group() as tasks:
        channels = Channels(session.store, session.bus, tasks)
        runner = ChatRunner(session, channels, tasks)
        app = AppState(session, model, channels, runner, ChatCache(session.store))
        tasks.start_soon(app.chat_list.follow)
        if session.deployment.remote:
            tasks.start_soon(adopt_orphans, app)
        yield app
        tasks.cancel_scope.cancel()


async def adopt_orphans(app: AppState) -> None:
    """Continue chats whose conductor died, also our own after a restart. If two servers try, one wins."""
    while True:
        with suppress(SeptetError):  # it is tried again; the server must not end
            for chat in await app.session.deployment.orphans():
                app.runner.start(await app.chats.state(chat))
        await anyio.sleep(HEARTBEAT)
