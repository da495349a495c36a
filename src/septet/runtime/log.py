"""A chat's log with the state folded from it, and the stream of its new events."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Self

import anyio

from septet.domain.events import Event, Recorded
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.ports import EventStore

Listen = Callable[[Recorded], Awaitable[None]]
"""Receives each event after it was stored; the chat continues when it returns."""


async def no_listener(recorded: Recorded) -> None:
    """Ignore the event."""


class Log:
    """Stores each event, folds it into the state, then passes it to the listener; the only writer of the state."""

    def __init__(self, store: EventStore, state: State, listen: Listen = no_listener) -> None:
        self.store = store
        self.state = state
        self._listen = listen

    @classmethod
    async def open(cls, store: EventStore, chat: str, listen: Listen = no_listener) -> Self:
        return cls(store, fold(await store.read(chat), State(chat=chat)), listen)

    async def record(self, event: Event) -> State:
        """Store the event; messages that the person sent in the meantime are folded before it."""
        await self.follow(*await self.store.append(self.state.chat, event, self.state.seq))
        return self.state

    async def move(self, decide: Callable[[State], Event], last: Event | None = None) -> State:
        """Store the event that `decide` returns; with `last`, which is not stored yet, both or neither."""
        if last is None:
            return await self.record(decide(self.state))
        known = ahead = self.state

        def then(news: Sequence[Recorded]) -> Event:
            nonlocal ahead
            ahead = fold(news, known)
            return decide(ahead)

        news = await self.store.append(known.chat, last, known.seq, then)
        self.state = fold(news[-1:], ahead)
        await self._notify(news)
        return self.state

    async def follow(self, *recorded: Recorded) -> None:
        """Fold events that are already stored, by this process or another machine."""
        self.state = fold(recorded, self.state)
        await self._notify(recorded)

    async def _notify(self, news: Sequence[Recorded]) -> None:
        if self._listen is not no_listener:
            for recorded in news:
                await self._listen(recorded)


async def stream(work: Callable[[Listen], Awaitable[object]]) -> AsyncGenerator[Recorded, None]:
    """Yield the events that `work` passes to its listener; it continues when the next event is requested.

    Raises what `work` raises. Closing the generator cancels `work` and waits until it has cleaned up.
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
