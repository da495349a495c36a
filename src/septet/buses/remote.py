"""A member elsewhere, from the conductor's side: its turn is ordered, and what it stores is heard from the log."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from time import monotonic

import anyio
import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.buses.turns import ENCODER, LEASE, SAYS, WORK, Failed, Finished, Left, Order, Say, as_error
from septet.domain.codec import encode
from septet.domain.events import ChatEnded, Recorded, TurnOpened
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.domain.values import Value
from septet.errors import Conflict, SeptetError
from septet.ports import EventStore, Speaker

PAUSE = 0.2
"""Seconds after which a turn is ordered again that nobody was there to take."""
REMEMBERED = 32
MOST_NEWS = 256 << 10
"""Events and bytes at most that an order carries."""


class Nobody(Value):
    """The server's word that nobody serves the role now."""


class Line:
    """A conductor's ear for one chat: what is stored of it, and what the members at work say."""

    def __init__(self, client: Client, chat: str, lease: float) -> None:
        self._client = client
        self._chat = chat
        self._heard: deque[Recorded | Say | Nobody | SeptetError] = deque()
        self._news: asyncio.Future[None] | None = None
        self._recent: deque[Recorded] = deque(maxlen=REMEMBERED)
        self._seen: dict[str, int] = {}
        self.inbox = client.new_inbox()
        self.lease = lease

    def note(self, recorded: Recorded) -> None:
        """What the conductor knows, to be sent along with an order."""
        self._recent.append(recorded)

    async def order(self, member: RoleSpec, turn: int) -> None:
        """Ask for one who takes the turn. A lost order is placed again, and so is one that was cut off."""
        since = self._seen.get(member.name, -1)
        news = [encode(recorded) for recorded in self._recent if recorded.seq > since >= 0]
        if len(news) == REMEMBERED or sum(map(len, news)) > MOST_NEWS:
            since, news = -1, []
        order = Order(
            chat=self._chat,
            speaker=member.name,
            role=member.role,
            turn=turn,
            since=since,
            news=tuple(map(msgspec.Raw, news)),
        )
        with suppress(nats.errors.Error):
            if self._client.is_connected:
                await self._client.publish(f"{WORK}.{member.role}", ENCODER.encode(order), reply=self.inbox)

    def finished(self, member: RoleSpec, seq: int) -> None:
        """The member has seen the chat until there, if it is the same one that takes the next turn."""
        self._seen[member.name] = seq

    async def hear(self, message: Msg) -> None:
        with suppress(msgspec.MsgspecError):  # not from a member
            self._put(SAYS.decode(message.data) if message.data else Nobody())

    async def follow(self, store: EventStore, after: int) -> None:
        try:
            async for recorded in store.watch(self._chat, after):
                self._put(recorded)
        except SeptetError as error:
            self._put(error)

    async def next(self, patience: float) -> Recorded | Say | Nobody | SeptetError | None:
        """The next thing that is heard, or nothing for so many seconds."""
        if not self._heard:
            loop = asyncio.get_running_loop()
            self._news = loop.create_future()
            timer = loop.call_later(patience, self._wake)
            try:
                await self._news
            finally:
                timer.cancel()
                self._news = None
        return self._heard.popleft() if self._heard else None

    def _put(self, heard: Recorded | Say | Nobody | SeptetError) -> None:
        self._heard.append(heard)
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


@asynccontextmanager
async def open_line(
    client: Client, store: EventStore, chat: str, after: int, lease: float = LEASE
) -> AsyncGenerator[Line]:
    """The line of a chat that was seen until `after`, for as long as it is conducted here."""
    line = Line(client, chat, lease)
    said = await client.subscribe(line.inbox, cb=line.hear)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
    # A plain task: it outlives no one, and a cancel scope may not be left open between the events of a generator.
    following = asyncio.create_task(line.follow(store, after))
    try:
        yield line
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        if not client.is_closed:
            await said.unsubscribe()


def remote(line: Line, member: RoleSpec) -> Speaker:
    """The member as a speaker of this process; its turns wait until somebody serves its role."""

    async def turn(state: State) -> AsyncGenerator[Recorded, None]:
        assert state.turn is not None
        exchange = Exchange(line, member, state.turn.number, state.seq)
        while (recorded := await exchange.next()) is not None:
            yield recorded
        line.finished(member, exchange.seq)

    return turn


class Exchange:
    """One turn: who is silent for too long is replaced, and who has finished is followed to the last event."""

    def __init__(self, line: Line, member: RoleSpec, turn: int, seq: int) -> None:
        self._line = line
        self._member = member
        self._turn = turn
        self._ending: Finished | Failed | None = None
        self._sign = float("-inf")
        self.seq = seq

    async def next(self) -> Recorded | None:
        """The next event of the chat, or nothing when the turn is over. Raises what the member raised."""
        while not self._over():
            if monotonic() - self._sign > self._line.lease:
                await self._order()
            heard = await self._line.next(self._line.lease)
            if isinstance(heard, SeptetError):
                raise heard
            if isinstance(heard, Recorded):
                if heard.seq > self.seq:
                    return self._seen(heard)
            elif heard is not None:
                await self._hear(heard)
        return None

    def _over(self) -> bool:
        if isinstance(self._ending, Failed):
            raise as_error(self._ending, self._member.name)
        return self._ending is not None and self._ending.seq <= self.seq

    def _seen(self, recorded: Recorded) -> Recorded:
        if isinstance(recorded.event, TurnOpened | ChatEnded):
            cause = f"another conductor has the chat '{recorded.chat}'"
            raise Conflict(cause, "resume it when that one has stopped")
        self._sign = monotonic()
        self.seq = recorded.seq
        return recorded

    async def _hear(self, say: Say | Nobody) -> None:
        if isinstance(say, Nobody):
            await anyio.sleep(PAUSE)
            await self._order()
        elif say.turn == self._turn:
            self._sign = monotonic()
            if isinstance(say, Left):
                await self._order()
            elif isinstance(say, Finished | Failed):
                self._ending = say

    async def _order(self) -> None:
        self._sign = monotonic()
        await self._line.order(self._member, self._turn)
