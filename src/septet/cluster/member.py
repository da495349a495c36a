"""A member that serves roles for chats on many machines: it takes turns, one at a time of each chat."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import NamedTuple, Protocol

import anyio
import msgspec
import nats.errors
from anyio.abc import TaskStatus
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.cluster.client import subscribe
from septet.cluster.connection import retry_forever
from septet.cluster.stream import last_of
from septet.cluster.turns import (
    ENCODER,
    LEASE,
    ORDERS,
    WORK,
    Beat,
    MemberLeft,
    Say,
    turn_failed,
    turn_subject,
)
from septet.cluster.users import opened_turn_subjects
from septet.common.text import decode_token
from septet.domain.events import Recorded
from septet.domain.state import State
from septet.errors import Conflict
from septet.ports import EventStore
from septet.runtime.conductor import Agents, perform
from septet.runtime.log import Log
from septet.team.floor import Floor


class Call(NamedTuple):
    """A turn to be taken: the event that opened it, and what the server told of that, if it was the server."""

    chat: str
    opened: int
    told: Msg | None = None


Perform = Callable[[Call], Awaitable[None]]
"""Takes a turn: stores what is done, and opens the next."""

AT_ONCE = 256
PRESENTLY = 0.5
"""Seconds after which a turn that takes long is told to be taken."""


class Shift:
    """The turns of a chat that wait here, the first one taken."""

    def __init__(self, call: Call) -> None:
        self.turns = {call.opened: call}
        self.beat = monotonic()
        self.slow = False
        self.work: asyncio.Task[None] | None = None
        """A plain task, one for each turn: a group of them would cost a third of the turn."""


class Member:
    """Different chats at the same time; a turn that is heard of twice is taken once."""

    def __init__(self, client: Client, perform: Perform, lease: float = LEASE) -> None:
        self._client = client
        self._perform = perform
        self._lease = lease
        self._room = AT_ONCE
        self._waiting: deque[str] = deque()
        """Chats for whose turns there is no room yet. A semaphore would look through all of them for each that ends."""
        self._shifts: dict[str, Shift] = {}

    async def serve(self, role: str, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Take the role's turns, for ever; `started` when the first one may come."""
        async with self._hearing(role):
            task_status.started()
            await self._beat()

    @asynccontextmanager
    async def _hearing(self, role: str) -> AsyncGenerator[None]:
        def hear_opened(message: Msg) -> None:
            opened = last_of(int((message.headers or {}).get("Nats-Sequence", "0")))
            self._take(Call(decode_token(message.subject.split(".")[2]), opened, message))

        def hear_order(message: Msg) -> None:
            with suppress(msgspec.MsgspecError):  # not from a conductor
                order = ORDERS.decode(message.data)
                self._take(Call(order.chat, order.opened))

        subjects = [
            *((one, hear_opened) for one in opened_turn_subjects(role)),
            (f"{WORK}.{role}", hear_order),
        ]
        heard = [
            await retry_forever(partial(subscribe, self._client, subject, hear, role))
            for subject, hear in subjects
        ]
        await retry_forever(self._client.flush)
        try:
            yield
        finally:
            with suppress(nats.errors.Error):
                for one in heard:
                    await one.unsubscribe()
            await self._stop()

    async def _stop(self) -> None:
        """Leave in order what is under way, and what waits."""
        waiting, self._waiting = self._waiting, deque()
        for chat in waiting:
            del self._shifts[chat]
        works = [shift.work for shift in self._shifts.values() if shift.work]
        for work in works:
            work.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*works, return_exceptions=True)
        await self._leave(*waiting)

    def _take(self, call: Call) -> None:
        if shift := self._shifts.get(call.chat):
            shift.turns.setdefault(call.opened, call)
        else:
            self._shifts[call.chat] = Shift(call)
            self._waiting.append(call.chat)
            self._begin()

    def _begin(self) -> None:
        """Work on as many chats as there is room for."""
        while self._room and self._waiting:
            self._room -= 1
            chat = self._waiting.popleft()
            shift = self._shifts[chat]
            shift.work = asyncio.create_task(self._work(chat, shift))

    async def _work(self, chat: str, shift: Shift) -> None:
        try:
            while shift.turns:
                call = next(iter(shift.turns.values()))
                await self._see_through(call)
                del shift.turns[call.opened]
        except anyio.get_cancelled_exc_class():
            await self._leave(chat)
            raise
        finally:
            del self._shifts[chat]
            self._room += 1
            self._begin()

    async def _leave(self, *chats: str) -> None:
        """Somebody else may take these turns at once."""
        with anyio.move_on_after(1.0, shield=True):
            for chat in chats:
                await self._tell(chat, MemberLeft())
            with suppress(nats.errors.Error):
                await self._client.flush()

    async def _see_through(self, call: Call) -> None:
        try:
            await self._perform(call)
        except Conflict:  # another member was faster
            return
        except Exception as error:  # whatever it is, who follows the chat must hear of it
            await self._tell(call.chat, turn_failed(error))

    async def _beat(self) -> None:
        """Keep the lease on all turns that are taken, also on those that wait for room."""
        while True:
            await anyio.sleep(PRESENTLY)
            for chat, shift in list(self._shifts.items()):
                age = monotonic() - shift.beat
                if age > (self._lease / 3 if shift.slow else PRESENTLY):
                    shift.beat, shift.slow = monotonic(), True
                    await self._tell(chat, Beat())

    async def _tell(self, chat: str, say: Say) -> None:
        """Should it get lost, the turn is ordered again."""
        with suppress(nats.errors.Error):
            await self._client.publish(turn_subject(chat), ENCODER.encode(say))


Cast = Callable[[State], tuple[Floor, Agents]]
"""The chat's policy, and those of its members who are served here."""

RECALLED = 4000
"""Chats that are remembered; of others the whole log is read again."""


class SharedLog(EventStore, Protocol):
    async def read_to(self, chat: str, after: int, told: Msg) -> Sequence[Recorded]:
        """At least the events after `after` up to the one that the server has told."""
        ...


class Recall:
    """Chats as this member last saw them: only what has happened since is read. Logs never change behind it."""

    def __init__(self, store: SharedLog) -> None:
        self._store = store
        self._known: dict[str, Log] = {}

    async def log(self, call: Call) -> Log:
        log = self._known.pop(call.chat, None) or Log(self._store, State(chat=call.chat))
        after = log.state.seq
        if call.told is None:
            await log.follow(*await self._store.read(call.chat, after))
        elif after < call.opened:
            await log.follow(*await self._store.read_to(call.chat, after, call.told))
        return log

    def keep(self, log: Log) -> None:
        self._known[log.state.chat] = log
        if len(self._known) > RECALLED:
            del self._known[next(iter(self._known))]


def take_turns(store: SharedLog, cast: Cast) -> Perform:
    """Go on with the chat, if it still is that turn."""
    recall = Recall(store)

    async def take(call: Call) -> None:
        log = await recall.log(call)
        if log.state.turn is not None and log.state.turn.opened == call.opened:
            floor, agents = cast(log.state)
            await perform(log, floor, agents)
        recall.keep(log)

    return take
