"""A chat whose members are elsewhere: what they store is heard from the log, and who is silent is replaced."""

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
    SAYS,
    WORK,
    MemberLeft,
    Order,
    Say,
    TurnFailed,
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

PAUSE = 0.2
"""Seconds after which a turn is ordered again that nobody was there to take."""
SOON = 2.0
"""Seconds in which a turn that was just opened should be taken: who does, tells so long before."""

OF_PERSON = (PersonSpoke, PlanApproved, StepGranted, StopRequested, WorkAccepted, ChatHalted)
"""Words that go between the events of others; so do all that say to be the person's, and that a conductor stopped."""


class Nobody(Value):
    """The server's word that nobody serves the role now."""


Heard = Recorded | Say | Nobody | SeptetError


class ChatListener:
    """An ear for one chat: what is stored of it, and what the members at work say."""

    def __init__(self, client: Client, chat: str) -> None:
        self._client = client
        self._chat = chat
        self._heard: deque[Heard] = deque()
        self.bell = Signal()

    async def order(self, state: State) -> None:
        """Ask for one who takes the open turn. A lost order is placed again, and so is one that was cut off."""
        assert state.turn is not None
        name = state.turn.speaker
        role = next((member.role for member in state.team.members if member.name == name), name)
        order = Order(chat=self._chat, opened=state.turn.opened)
        with suppress(nats.errors.Error):
            if self._client.is_connected:
                reply = turn_subject(self._chat)
                await self._client.publish(f"{WORK}.{role}", ENCODER.encode(order), reply=reply)

    def hear(self, message: Msg) -> None:
        with suppress(msgspec.MsgspecError):  # not from a member
            say = SAYS.decode(message.data) if message.data else Nobody()
            if say not in self._heard:  # else what is said too often would keep the events waiting
                self._put(say)

    async def listen(self, store: EventStore, after: int) -> None:
        try:
            async for recorded in store.watch(self._chat, after):
                self._put(recorded)
        except SeptetError as error:
            self._put(error)

    async def next(self, patience: float) -> Heard | None:
        """The next thing that is heard, or nothing for so many seconds."""
        if not self._heard:
            await self.bell.wait(patience)
        return self._heard.popleft() if self._heard else None

    def _put(self, heard: Heard) -> None:
        self._heard.append(heard)
        self.bell.notify()


@asynccontextmanager
async def open_line(client: Client, store: EventStore, chat: str, after: int) -> AsyncGenerator[ChatListener]:
    """The line of a chat that was seen until `after`."""
    line = ChatListener(client, chat)
    heard = await subscribe(client, turn_subject(chat), line.hear)
    # A plain task: a group of them would wrap its errors.
    listening = asyncio.create_task(line.listen(store, after))
    try:
        yield line
    finally:
        await wait_for_end(listening)
        line.bell.close()
        if not client.is_closed:
            await heard.unsubscribe()


async def wait_for_end(task: asyncio.Task[None]) -> None:
    """Until Python 3.12 `wait_for` may swallow a cancellation that comes together with its result: say it again."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=PAUSE)
    if not task.cancelled():
        task.result()


async def perform_together(
    client: Client, log: Log, floor: Floor, agents: Agents, lease: float = LEASE
) -> None:
    """The one loop with members on many machines: the turns of those who are here, and what the others do elsewhere."""
    async with open_line(client, log.store, log.state.chat, log.state.seq) as line:
        while log.state.ended is None:
            await perform(log, floor, agents)
            following = RemoteTurn(log, floor, line, lease)
            while log.state.turn is not None and log.state.turn.speaker not in agents:
                await following.next()


class RemoteTurn:
    """The chat while the floor is with members elsewhere."""

    def __init__(self, log: Log, floor: Floor, line: ChatListener, lease: float = LEASE) -> None:
        self._log = log
        self._floor = floor
        self._line = line
        self._lease = lease
        self._soon = min(SOON, lease)
        self._due = monotonic() + self._soon
        """When the turn is ordered, unless something is heard before."""
        self._before_words: list[State] = []
        """The chat before each of the person's words that came last: who moves then may not have heard them yet."""

    async def next(self) -> None:
        """Take in the next event of the chat. Raises what a member raised, and where a member broke the rules."""
        while True:
            heard = await self._line.next(max(0.0, self._due - monotonic()))
            if isinstance(heard, SeptetError):
                raise heard
            if isinstance(heard, Recorded):
                if heard.seq > self._log.state.seq:
                    await self._follow(heard)
                    return
            elif heard is not None:
                await self._hear(heard)
            elif monotonic() >= self._due:
                await self._order()

    async def _follow(self, recorded: Recorded) -> None:
        state, event = self._log.state, recorded.event
        if isinstance(event, TurnOpened | ChatEnded):
            check_step(state, event, self._floor, self._before_words)
        self._before_words = [*self._before_words, state] if is_of_person(event) else []
        self._due = monotonic() + (self._soon if isinstance(event, TurnOpened) else self._lease)
        await self._log.follow(recorded)

    async def _hear(self, say: Say | Nobody) -> None:
        self._due = monotonic() + self._lease
        if isinstance(say, TurnFailed):
            turn = self._log.state.turn
            raise as_error(say, turn.speaker if turn else "member")
        if isinstance(say, MemberLeft | Nobody):
            if isinstance(say, Nobody):
                await anyio.sleep(PAUSE)
            await self._order()

    async def _order(self) -> None:
        self._due = monotonic() + self._lease
        await self._line.order(self._log.state)


def is_of_person(event: Event) -> bool:
    return isinstance(event, OF_PERSON) or actor(event) == "person"


def check_step(
    state: State, event: TurnOpened | ChatEnded, floor: Floor, earlier: Sequence[State] = ()
) -> None:
    """The floor is a function of the log: whoever makes a move, everybody can check it.

    A move that was due before the person's last words is one that crossed them on the way.
    """
    if event == (expected := step(state, floor(state))):
        return
    if all(event != step(one, floor(one)) for one in earlier):
        cause = f"a member of '{state.chat}' has made the move {event}, where {expected} was due"
        raise LogDamaged(cause, "do all machines run the same Septet, and are all members to be trusted?")
