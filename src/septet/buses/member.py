"""A member that serves roles for chats conducted elsewhere: it takes orders, works, and reports each event."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from secrets import token_hex
from time import monotonic
from typing import TypeVar

import anyio
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.buses.turns import (
    ENCODER,
    LEASE,
    ORDERS,
    REPLIES,
    Beat,
    Finished,
    Granted,
    Hello,
    Left,
    Order,
    Reply,
    failed,
    made,
)
from septet.buses.work import make_queue, take_orders
from septet.domain.events import Event

Perform = Callable[[Order], AsyncGenerator[Event, None]]
"""Takes a turn: reads the chat as it is now and yields what the member does."""

T = TypeVar("T")
ANSWER = 2.0
LONG_POLL = 5.0
PAUSE = 0.2
PATIENCE = 15.0
"""Seconds to look for a conductor that does not answer: it may be reconnecting."""
STALE = 60.0
"""Age in seconds from which an order without a conductor is dropped."""
AT_ONCE = 64


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    """Try for ever: while the server is away there is nothing else to do, and the client reconnects."""
    while True:
        try:
            return await attempt()
        except nats.errors.TimeoutError:
            continue
        except nats.errors.Error:
            await anyio.sleep(PAUSE)


class GivenUp(Exception):
    """The conductor is gone, or has given the turn to another member."""


class Member:
    def __init__(self, client: Client, name: str, perform: Perform, lease: float = LEASE) -> None:
        self._client = client
        self._name = name
        self._perform = perform
        self._lease = lease

    async def serve(self, role: str) -> None:
        """Take the role's turns, for ever; different chats at the same time."""
        room = anyio.Semaphore(AT_ONCE)
        async with anyio.create_task_group() as tasks:
            await patiently(lambda: make_queue(self._client, role, self._lease))
            async with aclosing(take_orders(self._client, role, room)) as orders:
                async for message in orders:
                    await room.acquire()
                    tasks.start_soon(self._take, message, room)

    async def _take(self, message: Msg, room: anyio.Semaphore) -> None:
        try:
            shift = Shift(self._client, message, self._name, self._lease)
            await shift.work(self._perform)
        finally:
            room.release()


class Shift:
    """One order in the hands of one member."""

    def __init__(self, client: Client, message: Msg, name: str, lease: float) -> None:
        self._client = client
        self._message = message
        self._order = ORDERS.decode(message.data)
        self._name = name
        self._lease = lease
        self._grant = 0

    async def work(self, perform: Perform) -> None:
        try:
            if await self._granted() and await self._perform(perform):
                await self._message.ack()
            else:
                await self._give_back()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(1.0, shield=True), suppress(nats.errors.Error):
                await self._leave()
            raise

    async def _granted(self) -> bool:
        try:
            reply = await self._ask(Hello(attempt=token_hex(8), member=self._name))
        except GivenUp:
            return False
        self._grant = reply.grant
        return not reply.refused

    async def _perform(self, perform: Perform) -> bool:
        """Whether the turn was brought to its end by this member."""
        done = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._beat, tasks.cancel_scope)
            done = await self._report(perform)
            tasks.cancel_scope.cancel()
        return done

    async def _report(self, perform: Perform) -> bool:
        """Every event is in the log before the next one is made; a failure is told, never swallowed."""
        try:
            outcome = await self._outcome(perform)
            if isinstance(outcome, Finished):  # should it get lost, the conductor soon asks again
                await self._client.publish(self._order.inbox, ENCODER.encode(outcome))
            else:
                await self._tell(outcome)
        except (GivenUp, nats.errors.Error):
            return False
        return True

    async def _outcome(self, perform: Perform) -> Granted:
        number = 0
        try:
            async with aclosing(perform(self._order)) as events:
                async for event in events:
                    number += 1
                    await self._tell(made(self._grant, number, event))
        except GivenUp:
            raise
        except Exception as error:  # whatever it is, the conductor must hear of it
            return failed(self._grant, error)
        return Finished(grant=self._grant)

    async def _beat(self, turn: anyio.CancelScope) -> None:
        """Keep both leases: the server's on the order and the conductor's on the turn."""
        while True:
            await anyio.sleep(self._lease / 3)
            try:
                await self._message.in_progress()
                await self._tell(Beat(grant=self._grant))
            except (GivenUp, nats.errors.Error):
                turn.cancel()

    async def _tell(self, say: Granted) -> None:
        if (await self._ask(say)).refused:
            raise GivenUp

    async def _ask(self, say: Hello | Granted) -> Reply:
        """The conductor's answer; the same words again until it comes. Repeats do no harm there."""
        deadline = monotonic() + PATIENCE
        while monotonic() < deadline:
            try:
                answer = await self._client.request(self._order.inbox, ENCODER.encode(say), timeout=ANSWER)
                return REPLIES.decode(answer.data)
            except nats.errors.TimeoutError:
                continue
            except nats.errors.NoRespondersError:
                if isinstance(say, Hello):
                    break
                await anyio.sleep(PAUSE)
            except nats.errors.Error:
                await anyio.sleep(PAUSE)
        raise GivenUp

    async def _give_back(self) -> None:
        """Let another try later, or drop an order whose conductor has been gone for long."""
        age = datetime.now(UTC) - self._message.metadata.timestamp
        if age.total_seconds() > STALE:
            await self._message.term()
        else:
            await self._message.nak(delay=self._lease / 5)

    async def _leave(self) -> None:
        if self._grant:
            await self._client.publish(self._order.inbox, ENCODER.encode(Left(grant=self._grant)))
        await self._message.nak()
        await self._client.flush()
