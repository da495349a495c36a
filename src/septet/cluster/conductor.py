"""Conducts a chat with members on other machines: follows the log, and orders the turn of a silent member again."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic

import anyio
import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.cluster.client import Signal, subscribe
from septet.cluster.turns import (
    ENCODER,
    LEASE,
    ORDER_SUBJECT,
    TURN_MESSAGE_DECODER,
    MemberLeft,
    Order,
    TurnFailed,
    TurnMessage,
    as_error,
    turn_subject,
)
from septet.common.values import Value
from septet.domain.codec import actor
from septet.domain.events import (
    ChatEnded,
    ChatHalted,
    Event,
    PersonSpoke,
    PlanApproved,
    Recorded,
    StepGranted,
    StopRequested,
    TurnOpened,
    WorkAccepted,
)
from septet.domain.state import State
from septet.errors import LogDamaged, SeptetError
from septet.ports import EventStore
from septet.runtime.conductor import Agents, perform
from septet.runtime.log import Log
from septet.team.floor import Floor, step

RETRY_DELAY = 0.2
"""Seconds until a turn is ordered again if no member served its role."""
PICKUP_TIMEOUT = 2.0
"""Seconds in which a member should take a newly opened turn: its first heartbeat comes much earlier."""

PERSON_EVENTS = (PersonSpoke, PlanApproved, StepGranted, StopRequested, WorkAccepted, ChatHalted)
"""Events that may come between those of others, like every event whose actor is the person."""


class NoResponders(Value):
    """The server's answer that no member serves the role now."""


Incoming = Recorded | TurnMessage | NoResponders | SeptetError


class ChatListener:
    """Queues what happens in one chat: the events that are stored, and the messages of members at work."""

    def __init__(self, client: Client, chat: str) -> None:
        self._client = client
        self._chat = chat
        self._queue: deque[Incoming] = deque()
        self.signal = Signal()

    async def order(self, state: State) -> None:
        """Ask for a member to take the open turn. A lost order is repeated later."""
        assert state.floor.turn is not None
        name = state.floor.turn.speaker
        role = next((member.role for member in state.team.members if member.name == name), name)
        order = Order(chat=self._chat, opened=state.floor.turn.opened_at)
        with suppress(nats.errors.Error):
            if self._client.is_connected:
                reply = turn_subject(self._chat)
                await self._client.publish(f"{ORDER_SUBJECT}.{role}", ENCODER.encode(order), reply=reply)

    def receive(self, message: Msg) -> None:
        with suppress(msgspec.MsgspecError):  # not from a member
            turn_message = TURN_MESSAGE_DECODER.decode(message.data) if message.data else NoResponders()
            if turn_message not in self._queue:  # a member that repeats itself must not delay the events
                self._put(turn_message)

    async def follow_log(self, store: EventStore, after: int) -> None:
        try:
            async for recorded in store.watch(self._chat, after):
                self._put(recorded)
        except SeptetError as error:
            self._put(error)

    async def next(self, timeout: float) -> Incoming | None:
        """The next event or message; None after `timeout` seconds without one."""
        if not self._queue:
            await self.signal.wait(timeout)
        return self._queue.popleft() if self._queue else None

    def _put(self, incoming: Incoming) -> None:
        self._queue.append(incoming)
        self.signal.notify()


@asynccontextmanager
async def open_listener(
    client: Client, store: EventStore, chat: str, after: int
) -> AsyncGenerator[ChatListener]:
    """The listener of a chat, from the event after `after` on."""
    listener = ChatListener(client, chat)
    subscription = await subscribe(client, turn_subject(chat), listener.receive)
    # A plain task: a task group would wrap its errors.
    following = asyncio.create_task(listener.follow_log(store, after))
    try:
        yield listener
    finally:
        await cancel_and_wait(following)
        listener.signal.close()
        if not client.is_closed:
            await subscription.unsubscribe()


async def cancel_and_wait(task: asyncio.Task[None]) -> None:
    """Cancel a task repeatedly: before Python 3.12 `wait_for` may swallow a cancellation that comes with its result."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=RETRY_DELAY)
    if not task.cancelled():
        task.result()


async def perform_with_remote_members(
    client: Client, log: Log, floor: Floor, agents: Agents, lease: float = LEASE
) -> None:
    """The loop with members on many machines: run the turns of local members, follow those of others in the log."""
    async with open_listener(client, log.store, log.state.chat, log.state.seq) as listener:
        while log.state.ended is None:
            await perform(log, floor, agents)
            remote_turn = RemoteTurn(log, floor, listener, lease)
            while log.state.floor.turn is not None and log.state.floor.turn.speaker not in agents:
                await remote_turn.next()


class RemoteTurn:
    """Follows the chat while remote members have the floor."""

    def __init__(self, log: Log, floor: Floor, listener: ChatListener, lease: float = LEASE) -> None:
        self._log = log
        self._floor = floor
        self._listener = listener
        self._lease = lease
        self._pickup_timeout = min(PICKUP_TIMEOUT, lease)
        self._due = monotonic() + self._pickup_timeout
        """When the turn is ordered, unless something arrives before."""
        self._states_before_person: list[State] = []
        """The states before each of the person's latest messages: a member that moves now may not have seen them."""

    async def next(self) -> None:
        """Follow the next event of the chat. Raises a member's error, or LogDamaged if a member broke the rules."""
        while True:
            incoming = await self._listener.next(max(0.0, self._due - monotonic()))
            if isinstance(incoming, SeptetError):
                raise incoming
            if isinstance(incoming, Recorded):
                if incoming.seq > self._log.state.seq:
                    await self._follow(incoming)
                    return
            elif incoming is not None:
                await self._handle_message(incoming)
            elif monotonic() >= self._due:
                await self._order()

    async def _follow(self, recorded: Recorded) -> None:
        state, event = self._log.state, recorded.event
        if isinstance(event, TurnOpened | ChatEnded):
            check_step(state, event, self._floor, self._states_before_person)
        self._states_before_person = [*self._states_before_person, state] if is_from_person(event) else []
        self._due = monotonic() + (self._pickup_timeout if isinstance(event, TurnOpened) else self._lease)
        await self._log.follow(recorded)

    async def _handle_message(self, message: TurnMessage | NoResponders) -> None:
        self._due = monotonic() + self._lease
        if isinstance(message, TurnFailed):
            turn = self._log.state.floor.turn
            raise as_error(message, turn.speaker if turn else "member")
        if isinstance(message, MemberLeft | NoResponders):
            if isinstance(message, NoResponders):
                await anyio.sleep(RETRY_DELAY)
            await self._order()

    async def _order(self) -> None:
        self._due = monotonic() + self._lease
        await self._listener.order(self._log.state)


def is_from_person(event: Event) -> bool:
    return isinstance(event, PERSON_EVENTS) or actor(event) == "person"


def check_step(
    state: State, event: TurnOpened | ChatEnded, floor: Floor, earlier: Sequence[State] = ()
) -> None:
    """Check a member's move: the floor is a function of the log, so every process can compute it.

    A move that was right before the person's last messages is accepted: it crossed them on the way.
    """
    if event == (expected := step(state, floor(state))):
        return
    if all(event != step(before, floor(before)) for before in earlier):
        cause = f"a member of '{state.chat}' has made the move {event} instead of {expected}"
        raise LogDamaged(cause, "do all machines run the same Septet, and are all members to be trusted?")
