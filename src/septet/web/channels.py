"""A chat as its watchers hear it: one look at the log and one ear on the bus, however many watch."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from septet.agents.asking import Live, live_topic
from septet.domain.events import Recorded
from septet.ports import Bus, EventStore, Said
from septet.web.frames import Frame, events_frame, pieces_frame
from septet.web.streams import Streams

BREATH = 0.04
"""Seconds over which tokens are gathered into one frame: 25 frames a second look continuous."""
PATIENCE = 2000
"""Frames that a slow watcher may be behind; then it has to come again and is brought up to date."""

LIVES = msgspec.json.Decoder(Live)
Frames = MemoryObjectReceiveStream[Frame]


class Channel:
    """Lives as long as somebody watches the chat or this server conducts it."""

    def __init__(self, chat: str) -> None:
        self.chat = chat
        self.streams = Streams()
        self.users = 0
        self.scope = anyio.CancelScope()
        self._watchers: list[MemoryObjectSendStream[Frame]] = []
        self._heard = anyio.Event()

    def tell(self, frame: Frame) -> None:
        """To everybody, without waiting for anybody."""
        for watcher in list(self._watchers):
            try:
                watcher.send_nowait(frame)
            except (anyio.WouldBlock, anyio.BrokenResourceError):
                self._drop(watcher)

    def flush(self) -> None:
        if pieces := self.streams.news():
            self.tell(pieces_frame(pieces))

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[Frames]:
        """The frames from now on; they end where the watcher was too slow."""
        send, receive = anyio.create_memory_object_stream[Frame](PATIENCE)
        self._watchers.append(send)
        try:
            with receive:
                yield receive
        finally:
            self._drop(send)

    def _drop(self, watcher: MemoryObjectSendStream[Frame]) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)
            watcher.close()

    async def follow(self, store: EventStore, bus: Bus, after: int, ready: anyio.Event) -> None:
        with self.scope:
            async with anyio.create_task_group() as tasks, bus.subscribe(live_topic(self.chat)) as lives:
                tasks.start_soon(self._breathe)
                tasks.start_soon(self._watch, store, after)
                ready.set()
                async for said in lives:
                    self._hear(said)

    def _hear(self, said: Said) -> None:
        """Words of somebody who does not speak in its own name are nobody's."""
        with suppress(msgspec.MsgspecError):
            live = LIVES.decode(said.message)
            if live.speaker == said.by:
                self.streams.hear(live)
                self._heard.set()

    async def _breathe(self) -> None:
        while True:
            await self._heard.wait()
            self._heard = anyio.Event()
            self.flush()
            await anyio.sleep(BREATH)

    async def _watch(self, store: EventStore, after: int) -> None:
        async for recorded in store.watch(self.chat, after):
            self.record(recorded)

    def record(self, recorded: Recorded) -> None:
        """What was said before an event is told before it."""
        self.flush()
        self.streams.settle(recorded)
        self.tell(events_frame([recorded]))


class Channels:
    def __init__(self, store: EventStore, bus: Bus, tasks: TaskGroup) -> None:
        self._store = store
        self._bus = bus
        self._tasks = tasks
        self._open: dict[str, Channel] = {}

    def of(self, chat: str) -> Channel | None:
        return self._open.get(chat)

    @asynccontextmanager
    async def open(self, chat: str, after: int) -> AsyncGenerator[Channel]:
        """The chat's channel; the first user starts it, the last one ends it."""
        channel = self._open.get(chat)
        if channel is None:
            channel = self._open[chat] = Channel(chat)
            ready = anyio.Event()
            self._tasks.start_soon(channel.follow, self._store, self._bus, after, ready)
            channel.users += 1
            await ready.wait()
        else:
            channel.users += 1
        try:
            yield channel
        finally:
            channel.users -= 1
            if channel.users == 0:
                self._open.pop(chat, None)
                channel.scope.cancel()
