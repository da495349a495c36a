"""A chat's log together with the state that it adds up to, and the stream of what is stored."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Self

import anyio

from septet.domain.events import Event, Recorded
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.ports import EventStore

Listen = Callable[[Recorded], Awaitable[None]]
"""Is told each event once it is stored; the chat goes on when it has returned."""


async def no_listener(recorded: Recorded) -> None:
    """Nobody listens."""


class Log:
    """Recording is the only way forward: an event is stored, then folded, then told."""

    def __init__(self, store: EventStore, state: State, listen: Listen = no_listener) -> None:
        self.store = store
        self.state = state
        self._listen = listen

    @classmethod
    async def open(cls, store: EventStore, chat: str, listen: Listen = no_listener) -> Self:
        return cls(store, fold(await store.read(chat), State(chat=chat)), listen)

    async def record(self, event: Event) -> State:
        """Store the event after all that we know; what the person said meanwhile comes before it."""
        await self.follow(*await self.store.append(self.state.chat, event, self.state.seq))
        return self.state

    async def move(self, decide: Callable[[State], Event], last: Event | None = None) -> State:
        """Store what follows from all that is known; with an event that has not been stored yet: both or neither."""
        if last is None:
            return await self.record(decide(self.state))
        known = ahead = self.state

        def then(news: Sequence[Recorded]) -> Event:
            nonlocal ahead
            ahead = fold(news, known)
            return decide(ahead)

        news = await self.store.append(known.chat, last, known.seq, then)
        self.state = fold(news[-1:], ahead)
        await self._tell(news)
        return self.state

    async def follow(self, *recorded: Recorded) -> None:
        """Take in events that are stored already: here, or by another machine."""
        self.state = fold(recorded, self.state)
        await self._tell(recorded)

    async def _tell(self, news: Sequence[Recorded]) -> None:
        for recorded in news:
            await self._listen(recorded)


async def stream(work: Callable[[Listen], Awaitable[None]]) -> AsyncGenerator[Recorded, None]:
    """What the work tells its listener, event by event; the work goes on when the next one is asked for.

    What the work raises is raised here. Who stops asking cancels the work, and waits until it has put everything away.
    """
    queue: asyncio.Queue[Recorded | None] = asyncio.Queue()
    scope = anyio.CancelScope()

    async def listen(recorded: Recorded) -> None:
        queue.put_nowait(recorded)
        await queue.join()

    async def run() -> None:
        try:
            with scope:
                await work(listen)
        finally:
            queue.put_nowait(None)

    # A plain task: the cancel scope of a task group may not stay open between the events of a generator.
    task = asyncio.create_task(run())
    try:
        while (recorded := await queue.get()) is not None:
            yield recorded
            queue.task_done()
    finally:
        scope.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        task.result()
