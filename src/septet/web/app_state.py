"""Chats that are taken up again: more room after an end."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from time import time

import anyio
from anyio.abc import TaskGroup

from septet.agents.person import Answered, question
from septet.chat.search import Index
from septet.domain.events import ChatEnded, StopRequested, TurnOpened
from septet.domain.presence import BEAT
from septet.domain.reduce import reduce
from septet.domain.state import State
from septet.domain.teams import Budget
from septet.errors import Conflict, SeptetError, StoreFailed, innermost, told
from septet.ports import Agent, EventStore, Record, Sandbox
from septet.runtime.log import Log
from septet.team.floor import rounds_used
from septet.web.channels import Channel, Channels, Frame, Frames, Standing, chats_frame, standing_frame
from septet.web.chat_view import ChatCache, Summary
from septet.wiring.session import Session


def renewed(state: State) -> Budget:
    """As much room again as the chat began with, on top of what is used up."""
    first, spent = state.team.budget, state.spent
    return Budget(
        rounds=None if first.rounds is None else first.rounds + rounds_used(state),
        tokens=None if first.tokens is None else first.tokens + spent.usage.total,
        cost=None if first.cost is None else first.cost + spent.cost,
        seconds=None if first.seconds is None else first.seconds + state.seconds,
        price=state.budget.price,
    )


def waiting(store: EventStore) -> Agent:
    """A person who answers now or in a day, on the page, on the command line or from elsewhere."""

    async def turn(state: State, record: Record) -> None:
        if question(state) is None or state.stop_requested:
            return
        async for recorded in store.watch(state.chat, state.seq):
            state = reduce(state, recorded)
            if question(state) is None or state.stop_requested:
                raise Answered

    return turn


QUIET = 30.0
"""Seconds without news after which nobody else can be at work on a chat that is asked to stop."""


class Performance:
    """One chat being conducted. `turns` is how many turns may still open; None is as many as it takes."""

    def __init__(self, turns: int | None) -> None:
        self.scope = anyio.CancelScope()
        self.finished = anyio.Event()
        self.turns = turns

    def may_open(self) -> bool:
        if self.turns is None:
            return True
        self.turns -= 1
        return self.turns >= 0


class Conducting:
    def __init__(self, session: Session, channels: Channels, tasks: TaskGroup) -> None:
        self._session = session
        self._channels = channels
        self._tasks = tasks
        self._performances: dict[str, Performance] = {}
        self._troubles: dict[str, SeptetError] = {}
        self._sandbox: Sandbox | None = None

    def standing(self, chat: str) -> Standing:
        performance = self._performances.get(chat)
        trouble = self._troubles.get(chat)
        return Standing(
            chat=chat,
            conducted=performance is not None,
            pausing=performance is not None and performance.turns is not None,
            trouble=trouble.cause if trouble else "",
            remedy=trouble.remedy if trouble else "",
        )

    def go_on(self, state: State, one_turn: bool = False) -> None:
        """Conduct the chat from where it is, unless we do already. Starting is resuming."""
        performance = self._performances.get(state.chat)
        if performance is not None:
            performance.turns = 1 if one_turn else None
        elif state.ended is None:
            opened = state.turn is not None and not state.turn.settled
            performance = Performance((0 if opened else 1) if one_turn else None)
            self._performances[state.chat] = performance
            self._troubles.pop(state.chat, None)
            self._tasks.start_soon(self._perform, state, performance)
        self.tell(state.chat)

    def pause(self, chat: str) -> None:
        """Let the turn that is open end, and open no other."""
        if performance := self._performances.get(chat):
            performance.turns = 0
            self.tell(chat)

    async def over(self, chat: str) -> None:
        """Wait until the conductor of a chat that has ended has put everything away."""
        if performance := self._performances.get(chat):
            await performance.finished.wait()

    async def rest(self, chat: str) -> None:
        """Stop conducting at once; the chat can be resumed."""
        if performance := self._performances.get(chat):
            performance.scope.cancel()
            await performance.finished.wait()

    async def stop(self, state: State, moved: float) -> None:
        """End the chat now where it is ours or nobody's; else its conductor ends it after its turn."""
        store, ours = self._session.store, state.chat in self._performances
        await store.append(state.chat, StopRequested(), after=None)
        await self.rest(state.chat)
        if ours or time() - moved > QUIET:
            log = await Log.open(store, state.chat)
            if log.state.ended is None:
                await log.record(ChatEnded(reason="stopped", detail="stopped by the person"))

    async def _perform(self, state: State, performance: Performance) -> None:
        try:
            async with self._channels.open(state) as channel:
                try:
                    with performance.scope:
                        await self._turns(state.chat, performance)
                finally:
                    channel.streams.end()
        except Conflict as conflict:
            self._troubles[state.chat] = Conflict(conflict.cause, "watch and steer it here")
        except Exception as error:  # one chat's defect must not end the server and the other chats
            self._troubles[state.chat] = told(error)
            if not isinstance(innermost(error), SeptetError):
                logging.getLogger("septet.web").exception("a chat could not go on")
        finally:
            del self._performances[state.chat]
            performance.finished.set()
            self.tell(state.chat)

    async def sandbox(self) -> Sandbox:
        """Where the programs of all chats run; NoSandbox is raised where there is none."""
        self._sandbox = self._sandbox or await self._session.sandbox()
        return self._sandbox

    async def _turns(self, chat: str, performance: Performance) -> None:
        sandbox = await self.sandbox()
        answered = True
        while answered:
            try:
                await self._until_answered(chat, sandbox, performance)
                answered = False
            except Answered:
                continue

    async def _until_answered(self, chat: str, sandbox: Sandbox, performance: Performance) -> None:
        person = waiting(self._session.store)
        async with aclosing(self._session.perform(chat, sandbox, person)) as events:
            async for recorded in events:
                if isinstance(recorded.event, TurnOpened) and not performance.may_open():
                    return

    def tell(self, chat: str) -> None:
        """Everybody who watches sees the same controls."""
        if channel := self._channels.of(chat):
            channel.tell(standing_frame(self.standing(chat)))


GLANCE = 1.0
"""Seconds between two looks at the list while somebody has it open."""


class Overview:
    def __init__(self, shelf: ChatCache) -> None:
        self._shelf = shelf
        self._channel = Channel(State())
        self._seen: dict[str, int] = {}
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

    async def whole(self) -> Frame:
        return chats_frame(await self._shelf.summaries())

    async def follow(self) -> None:
        while True:
            if not self._listeners:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            with suppress(StoreFailed):  # it may be back at the next look, and the page must not end with it
                if moved := self._moved(await self._shelf.summaries()):
                    self._channel.tell(chats_frame(moved))
            await anyio.sleep(GLANCE)

    def _moved(self, summaries: list[Summary]) -> list[Summary]:
        moved = [summary for summary in summaries if self._seen.get(summary.chat) != summary.seq]
        self._seen.update({summary.chat: summary.seq for summary in moved})
        return moved


class Place:
    def __init__(
        self, session: Session, model: str, channels: Channels, conducting: Conducting, shelf: ChatCache
    ) -> None:
        self.session = session
        self.model = model
        self.channels = channels
        self.conducting = conducting
        self.shelf = shelf
        self.overview = Overview(shelf)
        self.index = Index(session.store)


@asynccontextmanager
async def open_place(session: Session, model: str) -> AsyncGenerator[Place]:
    """Chats go on in the background until the place is closed; they can all be resumed."""
    async with anyio.create_task_group() as tasks:
        channels = Channels(session.store, session.bus, tasks)
        conducting = Conducting(session, channels, tasks)
        place = Place(session, model, channels, conducting, ChatCache(session.store))
        tasks.start_soon(place.overview.follow)
        if session.elsewhere:
            tasks.start_soon(adopt_orphans, place)
        yield place
        tasks.cancel_scope.cancel()


async def adopt_orphans(place: Place) -> None:
    """Go on with chats whose conductor died, also our own before a restart. Should two do so, one wins."""
    while True:
        with suppress(SeptetError):  # it is tried again, and the page must not end with it
            for chat in await place.session.orphans():
                place.conducting.go_on(await place.shelf.state(chat))
        await anyio.sleep(BEAT)
