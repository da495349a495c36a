"""What the server tells of one chat as it stores it; where that has a gap, the log must be read."""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count
from secrets import token_hex
from time import monotonic, time
from typing import TypeVar

import anyio
import nats.errors
from msgspec.structs import replace
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.cluster.client import Signal, subscribe
from septet.cluster.stream import (
    SEQUENCE,
    STORED,
    LogStream,
    StaleSequence,
    StoredMessage,
    as_stored,
    chat_of,
    chat_subjects,
    is_fenced,
    is_message_end,
    is_ours,
    last_seq_of,
    message_of,
    pack_events,
    subject_of,
    unpack_events,
)
from septet.common.text import encode_token
from septet.domain.events import Event, Recorded
from septet.errors import LogDamaged, StoreFailed
from septet.ports import ChatHead, Sequel
from septet.stores.fence import check_fence

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
"""Stored with every message of a conductor or member: the one of the chat that it comes right after."""
EXPECTED_OF = "Nats-Expected-Last-Subject-Sequence-Subject"
WITHOUT_BODY = "Nats-Msg-Size"
GLANCE = 2.0
"""Seconds after which one should look by oneself: what the server told may have been lost on the way."""
KEPT = 1000


def before(headers: Mapping[str, str], chat: str) -> int:
    """The message of the chat that comes right before, or -1 where the server has compared with less than the chat.

    A writer chooses what its event is compared with: one that leaves others out would hide what they wrote.
    """
    return int(headers.get(EXPECTED, "-1")) if headers.get(EXPECTED_OF) == chat_subjects(chat) else -1


class Feed:
    def __init__(self, chat: str) -> None:
        self._chat = chat
        self._told: deque[Msg] = deque(maxlen=KEPT)
        self.bell = Signal()

    def hear(self, message: Msg) -> None:
        self._told.append(message)
        self.bell.notify()

    async def next(self, after: int) -> StoredMessage | None:
        """The message right after the message `after`, or nothing where only the log knows what came next."""
        while self._told or await self.bell.wait(GLANCE):
            message = self._told.popleft()
            headers = message.headers or {}
            if int(headers.get(SEQUENCE, "0")) > after:
                follows = before(headers, self._chat) == after and WITHOUT_BODY not in headers
                return as_stored(message) if follows else None
        return None


T = TypeVar("T")
PATIENCE = 60.0
"""Seconds to go on trying while the server is away."""
PAUSE = 0.2
AT_ONCE = 32
AHEAD = 3600.0
FEW = 16
"""Events that are rather fetched one by one: the server looks through everything that came in between."""
REMEMBERED = 10_000
"""Chats whose newest time is known."""
MESSAGE_ID = "Nats-Msg-Id"
"""By this the server knows words that were sent twice."""
STEP_ID = "Septet-Id"
"""By this a writer knows its own step again. The fence keeps it from being stored twice: the server need not."""


async def open_nats_store(client: Client, replicas: int = 1, patience: float = PATIENCE) -> "NatsStore":
    """The log that all machines of the server share; made by the first one that comes."""
    store = NatsStore(client, patience)
    await store.make(replicas)
    return store


class NatsStore:
    def __init__(self, client: Client, patience: float = PATIENCE) -> None:
        self._client = client
        self._stream = LogStream(client)
        self._patience = patience
        self._identity, self._numbers = token_hex(8), count()
        self._latest: dict[str, float] = {}
        self._heads: dict[str, tuple[int, ChatHead]] = {}

    async def make(self, replicas: int) -> None:
        await self._patiently(lambda: self._stream.ensure(replicas))

    async def append(
        self, chat: str, event: Event, after: int | None, then: Sequel | None = None
    ) -> Sequence[Recorded]:
        at = stamp(max(time(), self._latest.get(chat, 0.0)))
        mine = Recorded(chat=chat, seq=0, at=at, event=event)
        if after is None:
            return await self._publish([mine], fenced=False, headers={MESSAGE_ID: self._new_id()})
        return await self._append_fenced(mine, after, then)

    async def _append_fenced(self, mine: Recorded, after: int, then: Sequel | None) -> list[Recorded]:
        """Name what was seen; where the server knows more, look whether it is only words of the person."""
        seen, between = message_of(after), list[StoredMessage]()
        if not is_message_end(after):  # in the middle of a message: its writer went on in the same one
            check_fence(mine.chat, after - 1, last_seq_of(seen + 1), after)
        # The same id for every try: what was stored, but whose acknowledgement was lost, is not stored again.
        headers = {STEP_ID: self._new_id(), EXPECTED_OF: chat_subjects(mine.chat), EXPECTED: str(seen)}
        while True:
            earlier = self._unpack(between)
            try:
                sequel = [replace(mine, event=then([*earlier, mine]))] if then else []
                return earlier + await self._publish([mine, *sequel], fenced=True, headers=headers)
            except StaleSequence:
                between = await self._since(mine.chat, seen)
                if not between and await self._is_append_pending(mine.chat, seen):
                    continue
            ids = [one.headers.get(STEP_ID) for one in between]
            if headers[STEP_ID] in ids:
                return self._unpack(between[: ids.index(headers[STEP_ID]) + 1])
            check_fence(mine.chat, *tail(between, seen), after)
            headers[EXPECTED] = str(between[-1].seq)

    async def _is_append_pending(self, chat: str, seen: int) -> bool:
        """Whether the server refuses although nothing was added: an earlier try waits for the other copies."""
        newest = await self._patiently(lambda: self._stream.newest(chat_subjects(chat)))
        if (newest.seq if newest else 0) != seen:
            return False
        await anyio.sleep(PAUSE)
        return True

    async def _publish(
        self, events: Sequence[Recorded], fenced: bool, headers: dict[str, str]
    ) -> list[Recorded]:
        """Store the events as one message; what is returned has its place in the log."""
        subject = subject_of(events[0].chat, [one.event for one in events], fenced)
        body = pack_events(events)
        number = await self._patiently(lambda: self._stream.publish(subject, body, headers))
        first = last_seq_of(number) - len(events) + 1
        return [self._note_time(replace(one, seq=seq)) for seq, one in enumerate(events, start=first)]

    async def read(self, chat: str, after: int = 0) -> Sequence[Recorded]:
        found = self._unpack(await self._since(chat, message_of(after)))
        return found if is_message_end(after) else [one for one in found if one.seq > after]

    async def read_to(self, chat: str, after: int, notice: Msg) -> Sequence[Recorded]:
        """At least the events after `after` up to the one that the server has told.

        Each event names the one before it: a few are fetched one by one, which is cheaper than looking for more.
        """
        found, seen = [as_stored(notice)], message_of(after)
        while (previous := before(found[-1].headers, chat)) > seen and len(found) < FEW:
            stored = await self._patiently(partial(self._stream.message_at, previous))
            if stored is None:
                break
            found.append(stored)
        if previous != seen or not is_message_end(after) or chat_of(found[0].subject) != chat:
            return await self.read(chat, after)
        return self._unpack(reversed(found))

    async def chats(self) -> Sequence[ChatHead]:
        sizes: dict[str, int] = {}
        for subject, size in (await self._patiently(self._stream.subjects)).items():
            if is_ours(subject):
                chat = chat_of(subject)
                sizes[chat] = sizes.get(chat, 0) + size
        limit = anyio.CapacityLimiter(AT_ONCE)

        async def look(chat: str, size: int) -> None:
            async with limit:
                self._heads[chat] = (size, await self._head(chat))

        async with anyio.create_task_group() as tasks:
            for chat, size in sizes.items():
                if self._heads.get(chat, (0,))[0] != size:
                    tasks.start_soon(look, chat, size)
        return sorted((self._heads[chat][1] for chat in sizes), key=lambda head: head.changed, reverse=True)

    async def watch(self, chat: str, after: int = 0) -> AsyncIterator[Recorded]:
        async with self._feed(chat) as feed:
            while True:
                for recorded in await self.read(chat, after):
                    yield recorded
                    after = recorded.seq
                while (stored := await feed.next(message_of(after))) is not None:
                    for recorded in self._unpack([stored]):
                        yield recorded
                        after = recorded.seq

    @asynccontextmanager
    async def _feed(self, chat: str) -> AsyncGenerator[Feed]:
        """From here on nothing is missed, or it is known that something was.

        The server does what it is told in order: it listens for us before it answers what we ask next.
        """
        feed = Feed(chat)
        heard = await subscribe(self._client, f"{STORED}.{encode_token(chat)}.>", feed.hear)
        try:
            yield feed
        finally:
            feed.bell.close()
            if not self._client.is_closed:
                await heard.unsubscribe()

    async def _since(self, chat: str, seen: int) -> list[StoredMessage]:
        """What the leader has stored of the chat, also where another replica that answers is behind."""
        look = self._read_to_head if self._stream.replicated else self._read_to_end
        return await self._patiently(lambda: look(chat, seen))

    async def _read_to_end(self, chat: str, seen: int) -> list[StoredMessage]:
        found: list[StoredMessage] = []
        while True:
            page = await self._stream.page(chat_subjects(chat), seen + 1)
            found += page.messages
            if not page.more or not page.messages:
                return found
            seen = page.messages[-1].seq

    async def _read_to_head(self, chat: str, seen: int) -> list[StoredMessage]:
        """The leader is asked each time: what one that was lost had promised may never come."""
        found: list[StoredMessage] = []
        while (newest := await self._stream.newest(chat_subjects(chat))) and newest.seq > seen:
            page = await self._stream.page(chat_subjects(chat), seen + 1)
            if page.messages:
                found += page.messages
                seen = page.messages[-1].seq
            else:
                await anyio.sleep(PAUSE)
        return found

    async def _head(self, chat: str) -> ChatHead:
        subject = chat_subjects(chat)
        first = await self._patiently(lambda: self._stream.oldest(subject))
        last = await self._patiently(lambda: self._stream.newest(subject))
        assert first is not None
        assert last is not None
        started, changed = moment(first, 0), moment(last, -1)
        return ChatHead(chat=chat, seq=last_seq_of(last.seq), started=started, changed=changed)

    def _new_id(self) -> str:
        return f"{self._identity}-{next(self._numbers)}"

    def _unpack(self, messages: Iterable[StoredMessage]) -> list[Recorded]:
        return [self._note_time(recorded) for one in messages for recorded in unpack_events(one)]

    def _note_time(self, recorded: Recorded) -> Recorded:
        """Times never go back for those who write through this store; a clock far ahead takes nobody along."""
        at = min(recorded.at, time() + AHEAD)
        self._latest[recorded.chat] = max(at, self._latest.get(recorded.chat, 0.0))
        if len(self._latest) > REMEMBERED:
            del self._latest[next(iter(self._latest))]
        return recorded

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until the server answers."""
        deadline = monotonic() + self._patience
        while True:
            try:
                return await attempt()
            except (nats.errors.Error, OSError) as error:
                if monotonic() > deadline or self._client.is_closed:
                    raise StoreFailed(
                        f"the server of the log does not answer ({error or type(error).__name__})",
                        "resume when it is back; everything acknowledged is there",
                    ) from error
            await anyio.sleep(PAUSE)


def tail(between: Sequence[StoredMessage], seen: int) -> tuple[int, int]:
    """The newest sequence and the newest that a conductor wrote, of what came after the message `seen`."""
    last = between[-1].seq if between else seen - 1
    fenced = next((one.seq for one in reversed(between) if is_fenced(one.subject)), 0)
    return last_seq_of(last), last_seq_of(fenced)


def moment(stored: StoredMessage, place: int) -> float:
    """When it was; a damaged chat must not hide the others, and is told to be so when it is read."""
    try:
        return unpack_events(stored)[place].at
    except LogDamaged:
        return 0.0


def stamp(at: float) -> float:
    """The time to the microsecond, as it will be read back."""
    return datetime.fromtimestamp(at, UTC).timestamp()
