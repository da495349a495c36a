"""An agent whose body is elsewhere: it orders its turn from whoever serves the role and hands on what comes."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from time import monotonic

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from septet.buses.turns import (
    ENCODER,
    LEASE,
    SAYS,
    Failed,
    Finished,
    Hello,
    Left,
    Made,
    Order,
    Reply,
    Say,
    as_error,
)
from septet.buses.work import place
from septet.domain.events import Event
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent

REORDER = 60.0
"""Seconds without a taker after which the order is placed again: the first may have been given up as stale."""


def remote(client: Client, member: RoleSpec, lease: float = LEASE) -> Agent:
    """The member as an Agent of this process; its turns wait until somebody serves its role."""

    async def turn(state: State) -> AsyncGenerator[Event, None]:
        async with listening(client) as heard:
            order = Order(chat=state.chat, speaker=member.name, role=member.role, inbox=heard.subject)
            async with aclosing(Exchange(client, heard, order, lease).events()) as events:
                async for event in events:
                    yield event

    return turn


@asynccontextmanager
async def listening(client: Client) -> AsyncGenerator[Subscription]:
    heard = await client.subscribe(client.new_inbox())  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
    try:
        yield heard
    finally:
        if not client.is_closed:
            await heard.unsubscribe()


class Exchange:
    """One turn from the conductor's side: who has it, since when, and what came of it."""

    def __init__(self, client: Client, heard: Subscription, order: Order, lease: float) -> None:
        self._client = client
        self._heard = heard
        self._order = order
        self._lease = lease
        self._holder: str = ""
        self._grant = 0
        self._number = 0
        self._last_beat = 0.0

    async def events(self) -> AsyncGenerator[Event, None]:
        """What the holders of the turn make, each once, until one of them has finished."""
        while True:
            message, say = await self._next()
            if refused := self._refusal(say):
                await self._reply(message, Reply(refused=refused))
                continue
            if isinstance(say, Made) and say.number > self._number:
                yield say.event
                self._number = say.number
            self._note(say)
            await self._reply(message, Reply(grant=self._grant))
            if isinstance(say, Failed):
                raise as_error(say, self._order.speaker)
            if isinstance(say, Finished):
                return

    def _refusal(self, say: Say) -> str:
        if isinstance(say, Hello):
            taken = self._holder not in ("", say.attempt) and monotonic() - self._last_beat < self._lease
            return "another member has the turn" if taken else ""
        return "" if say.grant == self._grant else "the turn was given to another member"

    def _note(self, say: Say) -> None:
        self._last_beat = monotonic()
        if isinstance(say, Hello) and say.attempt != self._holder:
            self._holder = say.attempt
            self._grant += 1
            self._number = 0
        if isinstance(say, Left):
            self._holder = ""

    async def _next(self) -> tuple[Msg, Say]:
        """The next thing a member says; the order is placed at first and whenever nobody has taken it for long."""
        while True:
            if not self._last_beat or monotonic() - self._last_beat > self._longest_silence():
                await place(self._client, self._order)
                self._last_beat = monotonic()
            try:
                message = await self._heard.next_msg(timeout=self._lease)
                return message, SAYS.decode(message.data)
            except (nats.errors.TimeoutError, msgspec.MsgspecError):
                continue

    def _longest_silence(self) -> float:
        """A member that had the turn should have been heard; with nobody at work, waiting is normal."""
        return 3 * self._lease if self._holder else REORDER

    async def _reply(self, message: Msg, reply: Reply) -> None:
        if message.reply:
            await self._client.publish(message.reply, ENCODER.encode(reply))
