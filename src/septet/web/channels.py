"""Words and output while they are made, joined per speaker so that a late watcher gets them from the start."""

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
from septet.domain.events import ModelAnswered, Recorded, RunFinished
from septet.domain.reduce import reduce
from septet.domain.state import State
from septet.ports import Bus, BusMessage, EventStore
from septet.web.chat_view import Summary, chat_view, event_texts

Kind = Literal["text", "reasoning", "output"]
KINDS: tuple[Kind, ...] = ("text", "reasoning", "output")
MAX_KEPT = 1 << 18
"""Characters of one stream that a late watcher gets; of a longer one, the end."""


class StreamPiece(Value, omit_defaults=False):
    """A part of a stream. `at` is where it stands there, counted as browsers count (UTF-16).

    A higher `make` says that the stream began anew: what came before it is void.
    """

    speaker: str
    kind: Kind
    make: int
    at: int
    text: str


class Stream:
    """One speaker's words or output since they began."""

    def __init__(self) -> None:
        self.make = 0
        self.length = 0
        self.unsent = ""
        self.kept = ""

    def add(self, text: str) -> None:
        self.unsent += text

    def restart(self) -> None:
        self.make += 1
        self.length = 0
        self.unsent = self.kept = ""

    def flush(self) -> tuple[int, str]:
        """What was not sent yet, and where it stands."""
        at, text = self.length, self.unsent
        self.length += utf16_length(text)
        self.kept = (self.kept + text)[-MAX_KEPT:]
        self.unsent = ""
        return at, text


class Streams:
    """Everybody's, of one chat."""

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
        """What is in the log now is no longer live."""
        match recorded.event:
            case ModelAnswered(role=role):
                self._restart(role, "text")
                self._restart(role, "reasoning")
            case RunFinished():
                for speaker, kind in list(self._streams):
                    if kind == "output":
                        self._restart(speaker, kind)
            case _:  # the beginning of a turn or a run is no mark: its first pieces may be heard before it
                pass

    def drop_all(self) -> None:
        """Nobody speaks any more: what was begun and not recorded is void."""
        for speaker, kind in list(self._streams):
            self._restart(speaker, kind)

    def _restart(self, speaker: str, kind: Kind) -> None:
        stream = self._streams.get((speaker, kind))
        if stream is not None and (stream.length or stream.unsent):
            stream.restart()
            self._changed.discard((speaker, kind))

    def take_unsent(self) -> list[StreamPiece]:
        """What has come since the last call."""
        pieces: list[StreamPiece] = []
        for speaker, kind in sorted(self._changed):
            stream = self._streams[speaker, kind]
            at, text = stream.flush()
            pieces.append(StreamPiece(speaker=speaker, kind=kind, make=stream.make, at=at, text=text))
        self._changed.clear()
        return pieces

    def snapshot(self) -> list[StreamPiece]:
        """All that was sent of what is still being made."""
        return [
            StreamPiece(
                speaker=speaker,
                kind=kind,
                make=stream.make,
                at=stream.length - utf16_length(stream.kept),
                text=stream.kept,
            )
            for (speaker, kind), stream in self._streams.items()
            if stream.kept
        ]


def utf16_length(text: str) -> int:
    """How long a browser finds the text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


EVENTS_PER_FRAME = 500


class Frame(Value):
    """`last` is the sequence of the last event in it; 0 where it holds none."""

    text: str
    last: int = 0


class ConductorStatus(Value, omit_defaults=False):
    """What the server does for a chat: whether it conducts it, and what keeps it from doing so."""

    chat: str
    conducted: bool = False
    pausing: bool = False
    trouble: str = ""
    remedy: str = ""


def events_frame(events: Sequence[Recorded]) -> Frame:
    """Envelopes as they are in the log and, by sequence, what is said of them in words."""
    inner = b",".join(map(encode, events)).decode()
    texts = ENCODER.encode(event_texts(events)).decode()
    return Frame(text=f'{{"kind":"events","events":[{inner}],"texts":{texts}}}', last=events[-1].seq)


def chat_frame(state: State) -> Frame:
    return json_frame({"kind": "chat", "chat": chat_view(state)})


def history_frames(events: Sequence[Recorded]) -> Iterator[Frame]:
    """A long log in frames that can be sent one after the other, so that others get their turn."""
    for start in range(0, len(events), EVENTS_PER_FRAME):
        yield events_frame(events[start : start + EVENTS_PER_FRAME])


def pieces_frame(pieces: Sequence[StreamPiece]) -> Frame:
    return json_frame({"kind": "pieces", "pieces": pieces})


def status_frame(standing: ConductorStatus) -> Frame:
    return json_frame({"kind": "standing", "standing": standing})


def chats_frame(chats: Sequence[Summary]) -> Frame:
    return json_frame({"kind": "chats", "chats": chats})


def ready_frame(seq: int) -> Frame:
    """The watcher has everything up to this sequence; what follows is live."""
    return json_frame({"kind": "ready", "seq": seq})


def json_frame(content: object) -> Frame:
    return Frame(text=ENCODER.encode(content).decode())


FLUSH_SECONDS = 0.04
"""Seconds over which tokens are gathered into one frame: 25 frames a second look continuous."""
MAX_BACKLOG = 2000
"""Frames that a slow watcher may be behind; then it has to come again and is brought up to date."""

LIVE_DECODER = msgspec.json.Decoder(Live)
Frames = MemoryObjectReceiveStream[Frame]


class Channel:
    """What happens in a chat, for whoever watches it; lives as long as somebody does or this server conducts it."""

    def __init__(self, state: State) -> None:
        self.chat = state.chat
        self.state = state
        self.streams = Streams()
        self.users = 0
        self.scope = anyio.CancelScope()
        self._watchers: list[MemoryObjectSendStream[Frame]] = []
        self._heard = anyio.Event()

    def broadcast(self, frame: Frame) -> None:
        """To everybody, without waiting for anybody."""
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
        """The frames from now on; they end where the watcher was too slow."""
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
                async for said in lives:
                    self._receive(said)

    def _receive(self, said: BusMessage) -> None:
        """Words of somebody who does not speak in its own name are nobody's."""
        with suppress(msgspec.MsgspecError):
            live = LIVE_DECODER.decode(said.message)
            if live.speaker == said.by:
                self.streams.add(live)
                self._heard.set()

    async def _flush_regularly(self) -> None:
        while True:
            await self._heard.wait()
            self._heard = anyio.Event()
            self.flush()
            await anyio.sleep(FLUSH_SECONDS)

    async def _watch(self, store: EventStore) -> None:
        async for recorded in store.watch(self.chat, self.state.seq):
            self.record(recorded)

    def record(self, recorded: Recorded) -> None:
        """What was said before an event is told before it."""
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
        """The chat's channel; the first user starts it, the last one ends it."""
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
