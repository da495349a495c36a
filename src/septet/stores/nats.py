"""The event store on NATS JetStream: one stream for all chats, one fence per chat, for many machines.

Every append names the last sequence of the chat that its writer has seen, and the server compares. There is
no cache, lease or leader on our side: two conductors on two machines meet at the server.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
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

from septet.domain.codec import decode, encode
from septet.domain.events import Event, Recorded
from septet.domain.tokens import token
from septet.errors import StoreFailed
from septet.ports import ChatHead
from septet.stores.fence import check_fence
from septet.stores.nats_feed import EXPECTED, EXPECTED_OF, Feed, before
from septet.stores.nats_stream import LogStream, Outdated, Stored, as_stored
from septet.stores.nats_subjects import STORED, chat_of, is_fenced, subject_of, whole_chat

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds to go on trying while the server is away."""
PAUSE = 0.2
AT_ONCE = 32
FEW = 16
"""Events that are rather fetched one by one: the server looks through everything that came in between."""
MESSAGE_ID = "Nats-Msg-Id"


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
        await self._patiently(lambda: self._stream.make(replicas))

    async def append(self, chat: str, event: Event, after: int | None) -> Sequence[Recorded]:
        at = stamp(max(time(), self._latest.get(chat, 0.0)))
        mine = Recorded(chat=chat, seq=0, at=at, event=event)
        if after is None:
            seq = await self._publish(mine, fenced=False, headers={MESSAGE_ID: self._new_id()})
            return [self._noted(replace(mine, seq=seq))]
        return [self._noted(one) for one in await self._append_fenced(mine, after)]

    async def _append_fenced(self, mine: Recorded, after: int) -> list[Recorded]:
        """Name what was seen; where the server knows more, look whether it is only words of the person."""
        # The same id for every try: what was stored, but whose acknowledgement was lost, is not stored again.
        headers = {MESSAGE_ID: self._new_id(), EXPECTED_OF: whole_chat(mine.chat), EXPECTED: str(after)}
        between: list[Stored] = []
        while True:
            try:
                seq = await self._publish(mine, fenced=True, headers=headers)
                return [*map(as_recorded, between), replace(mine, seq=seq)]
            except Outdated:
                between = await self._since(mine.chat, after)
                if not between and await self._undecided(mine.chat, after):
                    continue
            ids = [one.headers.get(MESSAGE_ID) for one in between]
            if headers[MESSAGE_ID] in ids:
                return [as_recorded(one) for one in between[: ids.index(headers[MESSAGE_ID]) + 1]]
            check_fence(mine.chat, *tail(between, after), after)
            headers[EXPECTED] = str(between[-1].seq)

    async def _undecided(self, chat: str, after: int) -> bool:
        """Whether the server refuses although nothing was added: an earlier try waits for the other copies."""
        newest = await self._patiently(lambda: self._stream.newest(whole_chat(chat)))
        if (newest.seq if newest else 0) != after:
            return False
        await anyio.sleep(PAUSE)
        return True

    async def _publish(self, mine: Recorded, fenced: bool, headers: dict[str, str]) -> int:
        subject, body = subject_of(mine.chat, mine.event, fenced), encode(mine)
        return await self._patiently(lambda: self._stream.publish(subject, body, headers))

    async def read(self, chat: str, after: int = 0) -> Sequence[Recorded]:
        return [self._noted(as_recorded(one)) for one in await self._since(chat, after)]

    async def read_to(self, chat: str, after: int, told: Msg) -> Sequence[Recorded]:
        """At least the events after `after` up to the one that the server has told.

        Each event names the one before it: a few are fetched one by one, which is cheaper than looking for more.
        """
        found = [as_stored(told)]
        while (previous := before(found[-1].headers, chat)) > after and len(found) < FEW:
            stored = await self._patiently(partial(self._stream.at, previous))
            if stored is None:
                break
            found.append(stored)
        if previous != after:
            return await self.read(chat, after)
        return [self._noted(as_recorded(one)) for one in reversed(found)]

    async def chats(self) -> Sequence[ChatHead]:
        sizes: dict[str, int] = {}
        for subject, size in (await self._patiently(self._stream.subjects)).items():
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
                while (stored := await feed.next(after)) is not None:
                    yield self._noted(as_recorded(stored))
                    after = stored.seq

    @asynccontextmanager
    async def _feed(self, chat: str) -> AsyncGenerator[Feed]:
        """From here on nothing is missed, or it is known that something was."""
        feed = Feed(chat)
        heard = await self._client.subscribe(f"{STORED}.{token(chat)}.>", cb=feed.hear)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        await self._patiently(self._client.flush)
        try:
            yield feed
        finally:
            if not self._client.is_closed:
                await heard.unsubscribe()

    async def _since(self, chat: str, after: int) -> list[Stored]:
        """What the leader has stored of the chat, also where another replica that answers is behind."""
        look = self._read_to_head if self._stream.replicated else self._read_to_end
        return await self._patiently(lambda: look(chat, after))

    async def _read_to_end(self, chat: str, after: int) -> list[Stored]:
        found: list[Stored] = []
        while True:
            page = await self._stream.page(whole_chat(chat), after + 1)
            found += page.messages
            if not page.more or not page.messages:
                return found
            after = page.messages[-1].seq

    async def _read_to_head(self, chat: str, after: int) -> list[Stored]:
        """The leader is asked each time: what one that was lost had promised may never come."""
        found: list[Stored] = []
        while (newest := await self._stream.newest(whole_chat(chat))) and newest.seq > after:
            page = await self._stream.page(whole_chat(chat), after + 1)
            if page.messages:
                found += page.messages
                after = page.messages[-1].seq
            else:
                await anyio.sleep(PAUSE)
        return found

    async def _head(self, chat: str) -> ChatHead:
        subject = whole_chat(chat)
        first = await self._patiently(lambda: self._stream.oldest(subject))
        last = await self._patiently(lambda: self._stream.newest(subject))
        assert first is not None
        assert last is not None
        return ChatHead(chat=chat, seq=last.seq, started=as_recorded(first).at, changed=as_recorded(last).at)

    def _new_id(self) -> str:
        return f"{self._identity}-{next(self._numbers)}"

    def _noted(self, recorded: Recorded) -> Recorded:
        """Times never go back for those who write through this store."""
        self._latest[recorded.chat] = max(recorded.at, self._latest.get(recorded.chat, 0.0))
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


def tail(between: Sequence[Stored], after: int) -> tuple[int, int]:
    """The newest sequence and the newest that a conductor wrote, of what came after `after`."""
    last = between[-1].seq if between else after - 1
    return last, next((one.seq for one in reversed(between) if is_fenced(one.subject)), 0)


def as_recorded(stored: Stored) -> Recorded:
    return replace(decode(stored.body), chat=chat_of(stored.subject), seq=stored.seq)


def stamp(at: float) -> float:
    """The time to the microsecond, as it will be read back."""
    return datetime.fromtimestamp(at, UTC).timestamp()
