"""Broadcasts a chat's events and live text to the browsers that watch it."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Literal

import anyio
import msgspec
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from septet.agents.ask import Live, live_topic
from septet.common.values import Value
from septet.domain.codec import ENCODER, encode
from septet.domain.events import ModelAnswered, Recorded, RunFinished, TurnOpened
from septet.domain.reduce import reduce
from septet.domain.state import State
from septet.ports import Bus, BusMessage, EventStore
from septet.web.chat_view import Summary, chat_view, event_texts
from septet.wiring.chat_runner import LIVE_DECODER, ConductorStatus

Kind = Literal["text", "reasoning", "output"]
KINDS: tuple[Kind, ...] = ("text", "reasoning", "output")
MAX_KEPT = 1 << 18
"""Characters of one stream that a late watcher gets; of a longer stream it gets the end."""


class StreamPiece(Value, omit_defaults=False):
    """A part of a stream. `at` is its offset in the stream, in UTF-16 code units.

    `make` counts restarts: a higher one means that earlier pieces are discarded.
    """

    speaker: str
    kind: Kind
    make: int
    at: int
    text: str


class Stream:
    """One speaker's live text, reasoning or output."""

    def __init__(self) -> None:
        self.generation = 0
        self.length = 0
        self.unsent = ""
        self.kept = ""

    def add(self, text: str) -> None:
        self.unsent += text

    def restart(self) -> None:
        self.generation += 1
        self.length = 0
        self.unsent = self.kept = ""

    def flush(self) -> tuple[int, str]:
        """Return the unsent text and its offset, and mark it as sent."""
        offset, text = self.length, self.unsent
        self.length += utf16_length(text)
        self.kept = (self.kept + text)[-MAX_KEPT:]
        self.unsent = ""
        return offset, text


class Streams:
    """The live streams of all speakers in one chat."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, Kind], Stream] = {}
        self._changed: set[tuple[str, Kind]] = set()

    def add(self, live: Live) -> None:
        if live.restarted:
            for kind in KINDS:
                self._restart(live.speaker, kind)
        for kind in KINDS:
            if text := getattr(live, kind):
                self._streams.setdefault((live.speaker, kind), Stream()).add(text)
                self._changed.add((live.speaker, kind))

    def drop_recorded(self, recorded: Recorded) -> None:
        """Discard the live text that the event contains."""
        match recorded.event:
            case ModelAnswered(role=role):
                self._restart(role, "text")
                self._restart(role, "reasoning")
            case RunFinished():
                for speaker, kind in list(self._streams):
                    if kind == "output":
                        self._restart(speaker, kind)
            case TurnOpened(speaker=name):  # not of its own: their first pieces may arrive before the event
                for speaker, kind in list(self._streams):
                    if speaker != name:
                        self._restart(speaker, kind)
            case _:
                pass

    def drop_all(self) -> None:
        """Discard all live text, because the chat is no longer conducted."""
        for speaker, kind in list(self._streams):
            self._restart(speaker, kind)

    def _restart(self, speaker: str, kind: Kind) -> None:
        stream = self._streams.get((speaker, kind))
        if stream is not None and (stream.length or stream.unsent):
            stream.restart()
            self._changed.discard((speaker, kind))

    def take_unsent(self) -> list[StreamPiece]:
        """Return the pieces that came since the last call."""
        pieces: list[StreamPiece] = []
        for speaker, kind in sorted(self._changed):
            stream = self._streams[speaker, kind]
            offset, text = stream.flush()
            pieces.append(
                StreamPiece(speaker=speaker, kind=kind, make=stream.generation, at=offset, text=text)
            )
        self._changed.clear()
        return pieces

    def snapshot(self) -> list[StreamPiece]:
        """Return everything already sent of the unfinished streams."""
        return [
            StreamPiece(
                speaker=speaker,
                kind=kind,
                make=stream.generation,
                at=stream.length - utf16_length(stream.kept),
                text=stream.kept,
            )
            for (speaker, kind), stream in self._streams.items()
            if stream.kept
        ]


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units, as JavaScript counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


EVENTS_PER_FRAME = 500


class Frame(Value):
    """A WebSocket message. `last` is the sequence number of its last event; 0 if it has none."""

    text: str
    last: int = 0


def events_frame(events: Sequence[Recorded]) -> Frame:
    """Build a frame of events as in the log, with their display texts by sequence number."""
    inner = b",".join(map(encode, events)).decode()
    texts = ENCODER.encode(event_texts(events)).decode()
    return Frame(text=f'{{"kind":"events","events":[{inner}],"texts":{texts}}}', last=events[-1].seq)


def chat_frame(state: State) -> Frame:
    return json_frame({"kind": "chat", "chat": chat_view(state)})


def history_frames(events: Sequence[Recorded]) -> Iterator[Frame]:
    """Split a long log into frames, so that other tasks run in between."""
    for start in range(0, len(events), EVENTS_PER_FRAME):
        yield events_frame(events[start : start + EVENTS_PER_FRAME])


def pieces_frame(pieces: Sequence[StreamPiece]) -> Frame:
    return json_frame({"kind": "pieces", "pieces": pieces})


def status_frame(status: ConductorStatus) -> Frame:
    return json_frame({"kind": "standing", "standing": status})


def chats_frame(chats: Sequence[Summary]) -> Frame:
    return json_frame({"kind": "chats", "chats": chats})


def ready_frame(seq: int) -> Frame:
    """Tell the watcher that it has everything up to `seq`; what follows is live."""
    return json_frame({"kind": "ready", "seq": seq})


def json_frame(content: object) -> Frame:
    return Frame(text=ENCODER.encode(content).decode())


FLUSH_SECONDS = 0.04
"""Seconds over which tokens are collected into one frame: 25 frames a second look continuous."""
MAX_BACKLOG = 2000
"""Frames that a slow watcher may be behind; beyond that it is disconnected and must reconnect."""

Frames = MemoryObjectReceiveStream[Frame]


class Channel:
    """Sends a chat's events and live text to its watchers; open while the chat is watched or conducted here."""

    def __init__(self, state: State) -> None:
        self.chat = state.chat
        self.state = state
        self.streams = Streams()
        self.users = 0
        self.scope = anyio.CancelScope()
        self._watchers: list[MemoryObjectSendStream[Frame]] = []
        self._new_text = anyio.Event()

    def broadcast(self, frame: Frame) -> None:
        """Send to all watchers without waiting; a watcher whose queue is full is dropped."""
        for watcher in list(self._watchers):
            try:
                watcher.send_nowait(frame)
            except (anyio.WouldBlock, anyio.BrokenResourceError):
                self._drop(watcher)

    def flush(self) -> None:
        if pieces := self.streams.take_unsent():
            self.broadcast(pieces_frame(pieces))

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[Frames]:
        """Yield the frames from now on; they end if the watcher is too slow."""
        send, receive = anyio.create_memory_object_stream[Frame](MAX_BACKLOG)
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

    async def follow(self, store: EventStore, bus: Bus, ready: anyio.Event) -> None:
        with self.scope:
            async with anyio.create_task_group() as tasks, bus.subscribe(live_topic(self.chat)) as lives:
                tasks.start_soon(self._flush_regularly)
                tasks.start_soon(self._watch, store)
                ready.set()
                async for message in lives:
                    self._receive(message)

    def _receive(self, message: BusMessage) -> None:
        """Ignore messages whose claimed speaker is not the sender."""
        with suppress(msgspec.MsgspecError):
            live = LIVE_DECODER.decode(message.message)
            if live.speaker == message.by:
                self.streams.add(live)
                self._new_text.set()

    async def _flush_regularly(self) -> None:
        while True:
            await self._new_text.wait()
            self._new_text = anyio.Event()
            self.flush()
            await anyio.sleep(FLUSH_SECONDS)

    async def _watch(self, store: EventStore) -> None:
        async for recorded in store.watch(self.chat, self.state.seq):
            self.record(recorded)

    def record(self, recorded: Recorded) -> None:
        """Flush pending live text first, so it precedes the event."""
        self.flush()
        self.streams.drop_recorded(recorded)
        self.state = reduce(self.state, recorded)
        if self._watchers:
            self.broadcast(events_frame([recorded]))
            self.broadcast(chat_frame(self.state))


class Channels:
    def __init__(self, store: EventStore, bus: Bus, tasks: TaskGroup) -> None:
        self._store = store
        self._bus = bus
        self._tasks = tasks
        self._open: dict[str, Channel] = {}

    def get(self, chat: str) -> Channel | None:
        return self._open.get(chat)

    @asynccontextmanager
    async def open(self, state: State) -> AsyncGenerator[Channel]:
        """Yield the chat's channel; the first user starts it, the last one closes it."""
        chat = state.chat
        channel = self._open.get(chat)
        if channel is None:
            channel = self._open[chat] = Channel(state)
            ready = anyio.Event()
            self._tasks.start_soon(channel.follow, self._store, self._bus, ready)
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
