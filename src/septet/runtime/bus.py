"""The bus inside one event loop: a list of queues per topic, and nothing between."""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio

from septet.ports import BusMessage


class Queue:
    """What one subscriber has not read yet. It has no bound: a slow reader costs memory, nobody's time."""

    __slots__ = ("_news", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[BusMessage] = deque()
        self._news: anyio.Event | None = None

    def put(self, message: BusMessage) -> None:
        self._waiting.append(message)
        if self._news is not None:
            self._news.set()
            self._news = None

    def __aiter__(self) -> "Queue":
        return self

    async def __anext__(self) -> BusMessage:
        while not self._waiting:
            self._news = self._news or anyio.Event()
            await self._news.wait()
        return self._waiting.popleft()


class MemoryBus:
    """Publishing does not yield to the event loop: it costs about a microsecond, also for token deltas."""

    def __init__(self) -> None:
        self._topics: dict[str, list[Queue]] = {}

    async def publish(self, topic: str, message: bytes, by: str = "") -> None:
        for queue in self._topics.get(topic, ()):
            queue.put(BusMessage(by, message))

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncGenerator[AsyncIterator[BusMessage]]:
        queue = Queue()
        queues = self._topics.setdefault(topic, [])
        queues.append(queue)
        try:
            yield queue
        finally:
            queues.remove(queue)
            if not queues:
                del self._topics[topic]
