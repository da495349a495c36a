"""Serving agents: an instance is made for each key that is written to, and handles one message at a time."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from time import time

import anyio
import msgspec
import nats.errors
from anyio.abc import TaskGroup, TaskStatus
from nats.aio.msg import Msg

from septet.buses.addresses import AgentId, Subscription, agent_id, heard_by, topic_id
from septet.buses.mail import DIRECT, LEASE, TOPICS
from septet.buses.parcels import ENCODER, PARCELS, Answered, DeadLetter, Parcel
from septet.buses.patience import patiently
from septet.buses.post import Desk, Post
from septet.buses.registry import CHANGED
from septet.domain.tokens import text_of, token

Handler = Callable[[msgspec.Raw, Desk], Awaitable[object]]
Handlers = Mapping[str, Handler]
"""An agent: what it does with each type of message. What a handler returns answers a request."""
Make = Callable[[AgentId], Handlers]

GLANCE = 5.0
"""Seconds after which a host looks for new keys by itself: the server's hint may have been lost on the way."""
LONG_POLL = 5.0
TRIES = 3
UNKNOWN = "UnknownMessage"


async def serve_agents(
    post: Post, agent_type: str, make: Make, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Serve all agents of a type, for ever; other processes may serve the same type and share the work."""
    agent_id(f"{agent_type}/x")
    await patiently(lambda: post.registry.add_type(agent_type))
    async with anyio.create_task_group() as tasks:
        host = Host(post, agent_type, make, tasks)
        async with host.listening():
            await host.look()
            task_status.started()
            while True:
                await anyio.sleep(GLANCE)
                await host.look()


class Host:
    """All instances of one type of agent in this process."""

    def __init__(self, post: Post, agent_type: str, make: Make, tasks: TaskGroup) -> None:
        self._post = post
        self._type = agent_type
        self._make = make
        self._tasks = tasks
        self._keys: set[str] = set()
        self.subscriptions: Sequence[Subscription] = ()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """Be told at once of what is written to keys that have no instance yet."""
        heard = [
            await self._post.client.subscribe(subject, cb=hear)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
            for subject, hear in (
                (f"{TOPICS}.>", self._hear_topic),
                (f"{DIRECT}.{token(self._type)}.*", self._hear_direct),
                (CHANGED, self._hear_change),
            )
        ]
        await patiently(self._post.client.flush)
        try:
            yield
        finally:
            with suppress(nats.errors.Error):
                for one in heard:
                    await one.unsubscribe()

    async def look(self) -> None:
        """Everything that was written before somebody listened, or while the server was away."""
        self.subscriptions = await self._post.subscriptions()
        direct, topics = await patiently(lambda: self._post.mail.keys(self._type))
        for key in direct | {source for kind, source in topics if self.hears(kind)}:
            self._open(key)

    def hears(self, topic_type: str) -> bool:
        return heard_by(self._type, topic_type, self.subscriptions)

    async def _hear_topic(self, message: Msg) -> None:
        *_, kind, source = message.subject.split(".")
        if self.hears(text_of(kind)):
            self._open(text_of(source))

    async def _hear_direct(self, message: Msg) -> None:
        self._open(text_of(message.subject.rsplit(".", 1)[1]))

    async def _hear_change(self, _: Msg) -> None:
        with suppress(nats.errors.Error):
            await self.look()

    def _open(self, key: str) -> None:
        if key not in self._keys:
            self._keys.add(key)
            agent = AgentId(type=self._type, key=key)
            self._tasks.start_soon(Mailbox(self._post, self, agent, self._make(agent)).serve)


class Mailbox:
    """One instance. The server hands out its parcels one by one, whichever process asks for them."""

    def __init__(self, post: Post, host: Host, agent: AgentId, handlers: Handlers) -> None:
        self._post = post
        self._host = host
        self._agent = agent
        self._handlers = handlers
        self._handled = 0

    async def serve(self) -> None:
        self._post.working[str(self._agent)] = self.answer
        queue = await patiently(lambda: self._post.mail.mailbox(self._agent))
        while True:
            (message,) = await patiently(lambda: queue.fetch(1, LONG_POLL))
            try:
                await self._handle(message)
            except anyio.get_cancelled_exc_class():
                with anyio.move_on_after(1.0, shield=True), suppress(nats.errors.Error):
                    await (message.ack() if self._has_handled(message) else message.nak())
                    await self._post.client.flush()
                raise

    async def answer(self, parcel: Parcel) -> Answered:
        """What the agent says to it; whatever goes wrong becomes part of the answer."""
        handler = self._handlers.get(parcel.type)
        if handler is None:
            return Answered(error=UNKNOWN, text=f"{self._agent} knows no message '{parcel.type}'")
        try:
            result = await handler(parcel.data, Desk(self._post, self._agent, parcel))
            return Answered(data=msgspec.Raw(ENCODER.encode(result)))
        except Exception as error:  # a handler's failure must reach the sender or the dead letters
            return Answered(error=type(error).__name__, text=str(error)[:2000])

    async def _handle(self, message: Msg) -> None:
        parcel = PARCELS.decode(message.data)
        if not self._has_handled(message) and self._concerns(parcel):
            done, delivered = False, message.metadata.num_delivered
            keeping = asyncio.create_task(keep(message))  # plain: a group would cost more than most handlers
            try:
                done = await self._work(parcel, delivered)
                self._handled = message.metadata.sequence.stream if done else self._handled
            finally:
                keeping.cancel()
            if not done:
                await message.nak(delay=0.1 * 2**delivered)
                return
        await message.ack()

    def _has_handled(self, message: Msg) -> bool:
        """A server that crashed may have forgotten that a parcel was done with; we have not."""
        return message.metadata.sequence.stream <= self._handled

    def _concerns(self, parcel: Parcel) -> bool:
        if parcel.topic:
            return parcel.sender != str(self._agent) and self._host.hears(topic_id(parcel.topic).type)
        return not parcel.deadline or time() < parcel.deadline

    async def _work(self, parcel: Parcel, delivered: int) -> bool:
        """Whether the parcel is done with: answered, handled, or given up as a dead letter."""
        answer = await self.answer(parcel)
        if parcel.reply:
            await self._post.client.publish(parcel.reply, ENCODER.encode(answer))
        if not answer.error:
            return True
        if not parcel.reply and answer.error != UNKNOWN and delivered < TRIES:
            return False
        if not parcel.reply or answer.error == UNKNOWN:
            reason = f"{answer.error}: {answer.text}"
            letter = DeadLetter(recipient=str(self._agent), reason=reason, parcel=parcel)
            await self._post.mail.bury(letter, self._agent)
        return True


async def keep(message: Msg) -> None:
    """The server would give the parcel to another after a while."""
    while True:
        await anyio.sleep(LEASE / 3)
        with suppress(nats.errors.Error):
            await message.in_progress()
