"""A member process that serves roles for chats of a cluster: it takes turns, one at a time per chat."""

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
from nats.aio.msg import Msg

from septet.cluster.client import Connection
from septet.cluster.connection import retry_forever
from septet.cluster.stream import last_seq_of
from septet.cluster.turns import (
    ENCODER,
    LEASE,
    ORDER_DECODER,
    ORDER_SUBJECT,
    Heartbeat,
    MemberLeft,
    TurnMessage,
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


class PendingTurn(NamedTuple):
    """A turn to take: the event that opened it, and the server's notice, unless a conductor ordered it."""

    chat: str
    opened_seq: int
    notice: Msg | None = None


TakeTurn = Callable[[PendingTurn], Awaitable[None]]
"""Takes a turn: stores its events, and opens the next."""

MAX_CONCURRENT_CHATS = 256
FIRST_HEARTBEAT = 0.5
"""Seconds after which a member that works on a turn sends its first heartbeat."""


class ChatQueue:
    """The pending turns of a chat; the first one is being taken."""

    def __init__(self, turn: PendingTurn) -> None:
        self.turns = {turn.opened_seq: turn}
        self.last_heartbeat = monotonic()
        self.is_slow = False
        self.task: asyncio.Task[None] | None = None
        """A plain task: a task group would add a third to the cost of a turn."""


class Member:
    """Works on different chats at the same time; a turn that is announced twice is taken once."""

    def __init__(self, client: Connection, perform: TakeTurn, lease: float = LEASE) -> None:
        self._client = client
        self._perform = perform
        self._lease = lease
        self._free_slots = MAX_CONCURRENT_CHATS
        self._waiting: deque[str] = deque()
        """Chats that wait for a free slot. A semaphore would search all of them each time one ends."""
        self._queues: dict[str, ChatQueue] = {}

    async def serve(self, role: str, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Take the role's turns, forever; reports `started` when it is subscribed."""
        async with self._subscriptions(role):
            task_status.started()
            await self._send_heartbeats()

    @asynccontextmanager
    async def _subscriptions(self, role: str) -> AsyncGenerator[None]:
        def on_turn_opened(message: Msg) -> None:
            opened = last_seq_of(int((message.headers or {}).get("Nats-Sequence", "0")))
            self._enqueue(PendingTurn(decode_token(message.subject.split(".")[2]), opened, message))

        def on_order(message: Msg) -> None:
            with suppress(msgspec.MsgspecError):  # not from a conductor
                order = ORDER_DECODER.decode(message.data)
                self._enqueue(PendingTurn(order.chat, order.opened))

        subjects = [
            *((subject, on_turn_opened) for subject in opened_turn_subjects(role)),
            (f"{ORDER_SUBJECT}.{role}", on_order),
        ]
        subscriptions = [
            await retry_forever(partial(self._client.listen, subject, callback, role))
            for subject, callback in subjects
        ]
        await retry_forever(self._client.flush)
        try:
            yield
        finally:
            with suppress(nats.errors.Error):
                for subscription in subscriptions:
                    await subscription.unsubscribe()
            await self._stop()

    async def _stop(self) -> None:
        """Cancel running turns and tell the conductors that they, and the waiting ones, are free."""
        waiting, self._waiting = self._waiting, deque()
        for chat in waiting:
            del self._queues[chat]
        tasks = [queue.task for queue in self._queues.values() if queue.task]
        for task in tasks:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*tasks, return_exceptions=True)
        await self._leave(*waiting)

    def _enqueue(self, turn: PendingTurn) -> None:
        if queue := self._queues.get(turn.chat):
            queue.turns.setdefault(turn.opened_seq, turn)
        else:
            self._queues[turn.chat] = ChatQueue(turn)
            self._waiting.append(turn.chat)
            self._start_next()

    def _start_next(self) -> None:
        """Start work on waiting chats while there are free slots."""
        while self._free_slots and self._waiting:
            self._free_slots -= 1
            chat = self._waiting.popleft()
            queue = self._queues[chat]
            queue.task = asyncio.create_task(self._run_queue(chat, queue))

    async def _run_queue(self, chat: str, queue: ChatQueue) -> None:
        try:
            while queue.turns:
                turn = next(iter(queue.turns.values()))
                await self._perform_turn(turn)
                del queue.turns[turn.opened_seq]
        except anyio.get_cancelled_exc_class():
            await self._leave(chat)
            raise
        finally:
            del self._queues[chat]
            self._free_slots += 1
            self._start_next()

    async def _leave(self, *chats: str) -> None:
        """Announce that other members may take these turns at once."""
        with anyio.move_on_after(1.0, shield=True):
            for chat in chats:
                await self._publish(chat, MemberLeft())
            with suppress(nats.errors.Error):
                await self._client.flush()

    async def _perform_turn(self, turn: PendingTurn) -> None:
        try:
            await self._perform(turn)
        except Conflict:  # another member was faster
            return
        except Exception as error:  # any failure must reach the conductor
            await self._publish(turn.chat, turn_failed(error))

    async def _send_heartbeats(self) -> None:
        """Renew the lease on all turns that are taken, including those that wait for a slot."""
        while True:
            await anyio.sleep(FIRST_HEARTBEAT)
            for chat, queue in list(self._queues.items()):
                age = monotonic() - queue.last_heartbeat
                if age > (self._lease / 3 if queue.is_slow else FIRST_HEARTBEAT):
                    queue.last_heartbeat, queue.is_slow = monotonic(), True
                    await self._publish(chat, Heartbeat())

    async def _publish(self, chat: str, message: TurnMessage) -> None:
        """Publish a message; if it gets lost, the turn is ordered again."""
        with suppress(nats.errors.Error):
            await self._client.publish(turn_subject(chat), ENCODER.encode(message))


CastMembers = Callable[[State], tuple[Floor, Agents]]
"""Returns the floor policy of a chat, and its members that are served here."""

MAX_CACHED_LOGS = 4000
"""The number of chats cached; of others the whole log is read again."""


class SharedLog(EventStore, Protocol):
    async def read_to(self, chat: str, after: int, notice: Msg) -> Sequence[Recorded]:
        """At least the events after `after` up to the one of the server's notice."""
        ...


class LogCache:
    """Caches the logs of chats: only new events are read, because logs are append-only."""

    def __init__(self, store: SharedLog) -> None:
        self._store = store
        self._logs: dict[str, Log] = {}

    async def log(self, turn: PendingTurn) -> Log:
        log = self._logs.pop(turn.chat, None) or Log(self._store, State(chat=turn.chat))
        after = log.state.seq
        if turn.notice is None:
            await log.follow(*await self._store.read(turn.chat, after))
        elif after < turn.opened_seq:
            await log.follow(*await self._store.read_to(turn.chat, after, turn.notice))
        return log

    def keep(self, log: Log) -> None:
        self._logs[log.state.chat] = log
        if len(self._logs) > MAX_CACHED_LOGS:
            del self._logs[next(iter(self._logs))]


def take_turns(store: SharedLog, cast: CastMembers) -> TakeTurn:
    """A function that takes a turn, if it is still open."""
    cache = LogCache(store)

    async def take(turn: PendingTurn) -> None:
        log = await cache.log(turn)
        if log.state.floor.turn is not None and log.state.floor.turn.opened_at == turn.opened_seq:
            floor, agents = cast(log.state)
            await perform(log, floor, agents)
        cache.keep(log)

    return take
