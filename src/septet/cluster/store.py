"""The event store on NATS JetStream: fenced appends, reading, and watching by the server's notices."""

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
from nats.aio.msg import Msg

from septet.cluster.client import Connection, Signal
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
    message_number,
    pack_events,
    subject_of,
    unpack_events,
)
from septet.common.text import encode_token
from septet.domain.events import Event, Recorded
from septet.errors import LogDamaged, StoreFailed
from septet.ports import ChatHead, Sequel
from septet.stores.chat_locks import check_fence

EXPECTED_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
"""A header of every fenced message: the sequence of the chat's message right before it."""
EXPECTED_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
SIZE_HEADER = "Nats-Msg-Size"
POLL_SECONDS = 2.0
"""Seconds after which a watcher reads the log itself: a notice of the server may have been lost."""
MAX_NOTICES = 1000


def previous_sequence(headers: Mapping[str, str], subjects: str) -> int:
    """The sequence of the chat's message right before this one; -1 if the server did not check all its subjects.

    A writer chooses the subject that the server checks: a narrower one could hide messages of others.
    """
    return int(headers.get(EXPECTED_SEQUENCE, "-1")) if headers.get(EXPECTED_SUBJECT) == subjects else -1


class Feed:
    """The server's notices of new messages in one chat; after a gap, the log must be read."""

    def __init__(self, chat: str) -> None:
        self.chat = chat
        self._subjects = chat_subjects(chat)
        self._notices: deque[Msg] = deque(maxlen=MAX_NOTICES)
        self.signal = Signal()

    def hear(self, message: Msg) -> None:
        self._notices.append(message)
        self.signal.notify()

    def take(self, after: int) -> list[StoredMessage] | None:
        """What has come of the messages after `after`, without gaps; None if the log must be read."""
        messages: list[StoredMessage] = []
        while self._notices:
            message = self._notices.popleft()
            headers = message.headers or {}
            if (seq := int(headers.get(SEQUENCE, "0"))) > after:
                if previous_sequence(headers, self._subjects) != after or SIZE_HEADER in headers:
                    return None
                messages.append(as_stored(message))
                after = seq
        return messages

    async def next(self, after: int) -> list[StoredMessage] | None:
        """The messages after `after`, as soon as there are some; None if the log must be read."""
        while (messages := self.take(after)) is not None and not messages:
            if not await self.signal.wait(POLL_SECONDS):
                return None
        return messages


T = TypeVar("T")
RETRY_TIMEOUT = 60.0
"""Seconds to retry while the server is away."""
RETRY_DELAY = 0.2
MAX_CONCURRENT = 32
MAX_CLOCK_LEAD = 3600.0
MAX_SINGLE_READS = 16
"""Up to this many messages are fetched one by one: for a page the server searches everything in between."""
MAX_CACHED_TIMES = 10_000
"""The number of chats whose latest time is cached."""
MESSAGE_ID = "Nats-Msg-Id"
"""By this header the server recognises a person's message that is sent twice."""
STEP_ID = "Septet-Id"
"""By this header a writer recognises its own step. The fence, not the server, prevents storing it twice."""


async def open_nats_store(
    client: Connection, replicas: int = 1, retry_timeout: float = RETRY_TIMEOUT
) -> "NatsStore":
    """The log that all machines on the server share; creates it if it is missing."""
    store = NatsStore(client, retry_timeout)
    await store.create(replicas)
    return store


class NatsStore:
    def __init__(self, client: Connection, retry_timeout: float = RETRY_TIMEOUT) -> None:
        self._client = client
        self._stream = LogStream(client)
        self._retry_timeout = retry_timeout
        self._identity, self._numbers = token_hex(8), count()
        self._latest: dict[str, float] = {}
        self._heads: dict[str, tuple[int, ChatHead]] = {}

    async def create(self, replicas: int) -> None:
        await self._retry(lambda: self._stream.ensure(replicas))

    async def append(
        self, chat: str, event: Event, after: int | None, then: Sequel | None = None
    ) -> Sequence[Recorded]:
        at = stamp(max(time(), self._latest.get(chat, 0.0)))
        added = Recorded(chat=chat, seq=0, at=at, event=event)
        if after is None:
            return await self._publish([added], fenced=False, headers={MESSAGE_ID: self._new_id()})
        return await self._append_fenced(added, after, then)

    async def _append_fenced(self, added: Recorded, after: int, then: Sequel | None) -> list[Recorded]:
        """Append after what was seen. If the server has more, continue if that is only messages of the person."""
        seen, between = message_number(after), list[StoredMessage]()
        if not is_message_end(after):  # in the middle of a message: its writer has continued in it
            check_fence(added.chat, after - 1, last_seq_of(seen + 1), after)
        # The same id for every attempt: a stored step whose acknowledgement was lost is recognised.
        headers = {
            STEP_ID: self._new_id(),
            EXPECTED_SUBJECT: chat_subjects(added.chat),
            EXPECTED_SEQUENCE: str(seen),
        }
        while True:
            earlier = self.unpack(between)
            try:
                sequel = [replace(added, event=then([*earlier, added]))] if then else []
                return earlier + await self._publish([added, *sequel], fenced=True, headers=headers)
            except StaleSequence:
                between = await self._since(added.chat, seen)
                if not between and await self._is_append_pending(added.chat, seen):
                    continue
            ids = [message.headers.get(STEP_ID) for message in between]
            if headers[STEP_ID] in ids:
                return self.unpack(between[: ids.index(headers[STEP_ID]) + 1])
            check_fence(added.chat, *tail(between, seen), after)
            headers[EXPECTED_SEQUENCE] = str(between[-1].seq)

    async def _is_append_pending(self, chat: str, seen: int) -> bool:
        """Whether the server refuses although nothing was added: an earlier attempt waits for replicas."""
        newest = await self._retry(lambda: self._stream.newest(chat_subjects(chat)))
        if (newest.seq if newest else 0) != seen:
            return False
        await anyio.sleep(RETRY_DELAY)
        return True

    async def _publish(
        self, events: Sequence[Recorded], fenced: bool, headers: dict[str, str]
    ) -> list[Recorded]:
        """Store the events as one message; returns them with their sequences."""
        subject = subject_of(events[0].chat, [event.event for event in events], fenced)
        body = pack_events(events)
        number = await self._retry(lambda: self._stream.publish(subject, body, headers))
        first = last_seq_of(number) - len(events) + 1
        stored = [replace(event, seq=seq) for seq, event in enumerate(events, start=first)]
        self._note_time(stored)
        return stored

    async def read(self, chat: str, after: int = 0) -> Sequence[Recorded]:
        events = self.unpack(await self._since(chat, message_number(after)))
        return events if is_message_end(after) else [event for event in events if event.seq > after]

    async def read_to(self, chat: str, after: int, notice: Msg) -> Sequence[Recorded]:
        """At least the events after `after` up to the one in the server's notice.

        Each message names the one before it: a few are fetched one by one, which is cheaper than a page.
        """
        messages, seen, subjects = [as_stored(notice)], message_number(after), chat_subjects(chat)
        while (previous := previous_sequence(messages[-1].headers, subjects)) > seen and len(
            messages
        ) < MAX_SINGLE_READS:
            stored = await self._retry(partial(self._stream.message_at, previous))
            if stored is None:
                break
            messages.append(stored)
        if previous != seen or not is_message_end(after) or chat_of(messages[0].subject) != chat:
            return await self.read(chat, after)
        return self.unpack(reversed(messages))

    async def chats(self, most: int = 0) -> Sequence[ChatHead]:
        sizes: dict[str, int] = {}
        for subject, size in (await self._retry(self._stream.subjects)).items():
            if is_ours(subject):
                chat = chat_of(subject)
                sizes[chat] = sizes.get(chat, 0) + size
        limit = anyio.CapacityLimiter(MAX_CONCURRENT)

        async def read_head(chat: str, size: int) -> None:
            async with limit:
                self._heads[chat] = (size, await self._head(chat))

        async with anyio.create_task_group() as tasks:
            for chat, size in sizes.items():
                if self._heads.get(chat, (0,))[0] != size:
                    tasks.start_soon(read_head, chat, size)
        heads = sorted((self._heads[chat][1] for chat in sizes), key=lambda head: head.changed, reverse=True)
        return heads[: most or None]

    async def watch(self, chat: str, after: int = 0) -> AsyncIterator[Recorded]:
        async with self.feed(chat) as feed:
            messages: list[StoredMessage] | None = None
            while True:
                for recorded in await self.read(chat, after) if messages is None else self.unpack(messages):
                    yield recorded
                    after = recorded.seq
                messages = await feed.next(message_number(after))

    @asynccontextmanager
    async def feed(self, chat: str) -> AsyncGenerator[Feed]:
        """The notices of a chat. From here on none is missed, or the gap is detected.

        The server works in order: it subscribes us before it answers our next request.
        """
        feed = Feed(chat)
        subscription = await self._client.listen(f"{STORED}.{encode_token(chat)}.>", feed.hear)
        try:
            yield feed
        finally:
            feed.signal.close()
            if not self._client.is_closed:
                await subscription.unsubscribe()

    async def _since(self, chat: str, seen: int) -> list[StoredMessage]:
        """All that the leader has stored of the chat, even if another replica answers and is behind."""
        read = self._read_to_head if self._stream.replicated else self._read_to_end
        return await self._retry(lambda: read(chat, seen))

    async def _read_to_end(self, chat: str, seen: int) -> list[StoredMessage]:
        messages: list[StoredMessage] = []
        while True:
            page = await self._stream.page(chat_subjects(chat), seen + 1)
            messages += page.messages
            if not page.more or not page.messages:
                return messages
            seen = page.messages[-1].seq

    async def _read_to_head(self, chat: str, seen: int) -> list[StoredMessage]:
        """Ask the leader each time: messages that only a lost leader had may never come."""
        messages: list[StoredMessage] = []
        while (newest := await self._stream.newest(chat_subjects(chat))) and newest.seq > seen:
            page = await self._stream.page(chat_subjects(chat), seen + 1)
            if page.messages:
                messages += page.messages
                seen = page.messages[-1].seq
            else:
                await anyio.sleep(RETRY_DELAY)
        return messages

    async def _head(self, chat: str) -> ChatHead:
        subject = chat_subjects(chat)
        first = await self._retry(lambda: self._stream.oldest(subject))
        last = await self._retry(lambda: self._stream.newest(subject))
        assert first is not None
        assert last is not None
        started, changed = moment(first, 0), moment(last, -1)
        return ChatHead(chat=chat, seq=last_seq_of(last.seq), started=started, changed=changed)

    def _new_id(self) -> str:
        return f"{self._identity}-{next(self._numbers)}"

    def unpack(self, messages: Iterable[StoredMessage]) -> list[Recorded]:
        """The events of stored messages."""
        events = [recorded for message in messages for recorded in unpack_events(message)]
        self._note_time(events)
        return events

    def _note_time(self, events: Sequence[Recorded]) -> None:
        """Times of this store's writes in a chat never go back; a clock that is far ahead does not drag them along."""
        latest = max([recorded.at for recorded in events], default=0.0)
        if events and latest > self._latest.get(events[0].chat, 0.0):
            self._latest[events[0].chat] = min(latest, time() + MAX_CLOCK_LEAD)
            if len(self._latest) > MAX_CACHED_TIMES:
                del self._latest[next(iter(self._latest))]

    async def _retry(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Retry until the server answers or the time is over."""
        deadline = monotonic() + self._retry_timeout
        while True:
            try:
                return await attempt()
            except (nats.errors.Error, OSError) as error:
                if monotonic() > deadline or self._client.is_closed:
                    raise StoreFailed(
                        f"the server of the log does not answer ({error or type(error).__name__})",
                        "resume when it is back; everything acknowledged is there",
                    ) from error
            await anyio.sleep(RETRY_DELAY)


def tail(between: Sequence[StoredMessage], seen: int) -> tuple[int, int]:
    """The newest sequence and the newest that a conductor wrote, of what came after the message `seen`."""
    last = between[-1].seq if between else seen - 1
    fenced = next((message.seq for message in reversed(between) if is_fenced(message.subject)), 0)
    return last_seq_of(last), last_seq_of(fenced)


def moment(stored: StoredMessage, index: int) -> float:
    """The time of an event of a message; 0 if it is damaged: that must not hide other chats."""
    try:
        return unpack_events(stored)[index].at
    except LogDamaged:
        return 0.0


def stamp(at: float) -> float:
    """The time rounded to microseconds, as it will be read back."""
    return datetime.fromtimestamp(at, UTC).timestamp()
