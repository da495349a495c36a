"""A member that serves roles for chats conducted elsewhere: it takes orders and sees turns to their ends."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
import nats.errors
from anyio.abc import TaskGroup, TaskStatus
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.buses.patience import patiently
from septet.buses.turns import ENCODER, LEASE, ORDERS, WORK, Beat, Finished, Left, Order, Say, failed
from septet.errors import Conflict

Perform = Callable[[Order], Awaitable[int]]
"""Takes a turn: stores what the member does, and returns the last sequence of the chat."""

AT_ONCE = 64


class Shift:
    """A turn in the hands of this member, and the conductors who want to hear of it."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.inboxes: set[str] = set()


class Member:
    """Different chats at the same time; a turn that is ordered twice is taken once."""

    def __init__(self, client: Client, perform: Perform, lease: float = LEASE) -> None:
        self._client = client
        self._perform = perform
        self._lease = lease
        self._room = anyio.CapacityLimiter(AT_ONCE)
        self._shifts: dict[tuple[str, int], Shift] = {}

    async def serve(self, role: str, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Take the role's turns, for ever; `started` when the first one may come."""
        async with anyio.create_task_group() as tasks, self._hearing(role, tasks):
            task_status.started()
            await self._beat()

    @asynccontextmanager
    async def _hearing(self, role: str, tasks: TaskGroup) -> AsyncGenerator[None]:
        async def hear(message: Msg) -> None:
            with suppress(msgspec.MsgspecError):  # not from a conductor
                self._take(ORDERS.decode(message.data), message.reply, tasks)

        subject = f"{WORK}.{role}"
        heard = await patiently(lambda: self._client.subscribe(subject, queue=role, cb=hear))  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        await patiently(self._client.flush)
        try:
            yield
        finally:
            with suppress(nats.errors.Error):
                await heard.unsubscribe()

    def _take(self, order: Order, inbox: str, tasks: TaskGroup) -> None:
        key = (order.chat, order.turn)
        if (shift := self._shifts.get(key)) is None:
            shift = self._shifts[key] = Shift(order)
            tasks.start_soon(self._work, shift)
        shift.inboxes.add(inbox)

    async def _work(self, shift: Shift) -> None:
        try:
            async with self._room:
                say = await self._outcome(shift.order)
            if say is not None:
                await self._tell(shift, say)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(1.0, shield=True):
                await self._tell(shift, Left(turn=shift.order.turn))
                with suppress(nats.errors.Error):
                    await self._client.flush()
            raise
        finally:
            del self._shifts[shift.order.chat, shift.order.turn]

    async def _outcome(self, order: Order) -> Say | None:
        """How the turn ended, or nothing where another member was faster."""
        try:
            return Finished(turn=order.turn, seq=await self._perform(order))
        except Conflict:
            return None
        except Exception as error:  # whatever it is, the conductor must hear of it
            return failed(order.turn, error)

    async def _beat(self) -> None:
        """Keep the lease on all turns that are taken, also on those that wait for room."""
        while True:
            await anyio.sleep(self._lease / 3)
            for shift in list(self._shifts.values()):
                await self._tell(shift, Beat(turn=shift.order.turn))

    async def _tell(self, shift: Shift, say: Say) -> None:
        """Should it get lost, the conductor orders the turn again."""
        for inbox in shift.inboxes:
            with suppress(nats.errors.Error):
                await self._client.publish(inbox, ENCODER.encode(say))
