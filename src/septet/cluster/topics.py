"""Messages between agents on many machines: topics, subscriptions, direct requests, dead letters."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from time import time

import anyio
import msgspec
import nats.errors
from anyio.abc import TaskGroup, TaskStatus
from msgspec.structs import replace
from nats.aio.msg import Msg

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats, retry_forever
from septet.cluster.endpoint import ConnectOptions, endpoint_of
from septet.cluster.messages import (
    CHANGED,
    DIRECT,
    ENCODER,
    ENVELOPES,
    LEASE,
    REPLIES,
    TOPICS,
    AgentId,
    Caller,
    DeadLetter,
    Envelope,
    MessageStream,
    PrefixSubscription,
    Registry,
    ReplyMessage,
    Subscription,
    TopicId,
    TypeSubscription,
    agent_id,
    is_subscribed,
    new_envelope,
    open_registry,
    topic_id,
)
from septet.common.text import decode_token, encode_token
from septet.errors import BadUsage, RemoteFailed, Unreachable

Respond = Callable[[Envelope], Awaitable[ReplyMessage]]


class TopicClient:
    """Publishes, requests and subscribes, for one process."""

    def __init__(
        self, client: Connection, messages: MessageStream, registry: Registry, tasks: TaskGroup
    ) -> None:
        self.nats = client
        self._tasks = tasks
        self.messages = messages
        self.registry = registry
        self.inbox = client.new_inbox()
        self._numbers = count()
        self._replies: dict[str, asyncio.Future[bytes]] = {}
        self.instances: dict[str, Respond] = {}
        """The agents of this process, for nested requests to an agent that is waiting."""

    async def publish(self, topic: str, kind: str, data: object, sender: str = "") -> str:
        """Store a message for all subscribers, present and future; returns the envelope's id."""
        return await self.send(topic, new_envelope(kind, data, sender))

    async def send(self, topic: str, envelope: Envelope) -> str:
        target = topic_id(topic)
        await self.messages.send_to_topic(target, replace(envelope, topic=topic, subject=topic))
        return envelope.id

    async def request(
        self, recipient: str, kind: str, data: object, deadline: float = 60.0, sender: str = ""
    ) -> msgspec.Raw:
        """Send a request; returns the answer as JSON. Waits `deadline` seconds, also for a recipient that restarts."""
        return await self.ask(recipient, new_envelope(kind, data, sender), deadline)

    async def ask(self, recipient: str, envelope: Envelope, deadline: float) -> msgspec.Raw:
        agent = agent_id(recipient)
        if not await retry_forever(lambda: self.registry.knows(agent.type)):
            raise Unreachable(f"there is no agent of type '{agent.type}'", "is its process registered?")
        with self._await_reply() as (reply, reply_data):
            expiry = time() + deadline
            envelope = replace(envelope, recipient=recipient, subject=recipient, reply=reply, deadline=expiry)
            await self._deliver(agent, envelope)
            try:
                async with asyncio.timeout(deadline):
                    answer = REPLIES.decode(await reply_data)
            except TimeoutError as error:
                raise Unreachable(
                    f"{recipient} did not answer in {deadline:g} s", "allow it more time"
                ) from error
        if answer.error:
            raise RemoteFailed(f"{recipient} failed ({answer.error}: {answer.text})")
        return answer.data

    @contextmanager
    def _await_reply(self) -> Generator[tuple[str, asyncio.Future[bytes]]]:
        """A subject and a future for a reply. All requests share one subscription: one for each would be costly."""
        number = str(next(self._numbers))
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            yield f"{self.inbox}.{number}", reply
        finally:
            del self._replies[number]

    def receive_reply(self, message: Msg) -> None:
        reply = self._replies.get(message.subject.rsplit(".", 1)[1])
        if reply is not None and not reply.done():
            reply.set_result(message.data)

    async def _deliver(self, agent: AgentId, envelope: Envelope) -> None:
        """Queue the request; an agent that waits further up in the chain gets it directly: its queue is blocked."""
        waiting = next((caller for caller in envelope.chain if caller.agent == str(agent)), None)
        if waiting is None:
            await self.messages.send_to_agent(agent, envelope)
        else:
            await self.nats.publish(waiting.inbox, ENCODER.encode(envelope))

    async def subscribe(self, subscription: Subscription) -> str:
        """Add a subscription; returns its id. Adding it twice has no further effect."""
        await retry_forever(lambda: self.registry.add(subscription))
        return subscription.id

    async def unsubscribe(self, identity: str) -> None:
        if not await retry_forever(lambda: self.registry.remove(identity)):
            raise BadUsage(f"there is no subscription '{identity}'", "list them first")

    async def subscriptions(self) -> Sequence[Subscription]:
        return await retry_forever(self.registry.subscriptions)

    async def dead_letters(self) -> Sequence[DeadLetter]:
        return await retry_forever(self.messages.dead_letters)

    async def answer_nested(self, message: Msg) -> None:
        """Answer a request to an agent of this process that waits for the request that led to it."""
        envelope = ENVELOPES.decode(message.data)
        if respond := self.instances.get(envelope.recipient):
            self._tasks.start_soon(self._answer, envelope, respond)

    async def _answer(self, envelope: Envelope, respond: Respond) -> None:
        await self.nats.publish(envelope.reply, ENCODER.encode(await respond(envelope)))


class HandlerContext:
    """Sends a handler's messages in its agent's name, with ids that stay the same if the handler runs again."""

    def __init__(self, topics: TopicClient, agent: AgentId, envelope: Envelope) -> None:
        self._topics = topics
        self._envelope = envelope
        self._sent = 0
        self.agent = agent

    @property
    def envelope(self) -> Envelope:
        """The message that is being handled."""
        return self._envelope

    @property
    def parcel(self) -> Envelope:
        """The original name of `envelope`."""
        return self._envelope

    async def publish(self, topic: str, kind: str, data: object) -> str:
        return await self._topics.send(topic, self._next(kind, data))

    async def request(self, recipient: str, kind: str, data: object, deadline: float = 60.0) -> msgspec.Raw:
        caller = Caller(agent=str(self.agent), inbox=self._topics.inbox)
        envelope = replace(self._next(kind, data), chain=(*self._envelope.chain, caller))
        return await self._topics.ask(recipient, envelope, deadline)

    def _next(self, kind: str, data: object) -> Envelope:
        self._sent += 1
        return new_envelope(kind, data, str(self.agent), f"{self._envelope.id}:{self.agent}:{self._sent}")


@asynccontextmanager
async def open_topic_client(client: Connection, replicas: int = 1) -> AsyncGenerator[TopicClient]:
    """The topics on a connection; leaving the context stops the agents that are served."""
    messages = MessageStream(client)
    await retry_forever(lambda: messages.create(replicas))
    registry = await retry_forever(lambda: open_registry(client, replicas))
    async with anyio.create_task_group() as tasks:
        topics = TopicClient(client, messages, registry, tasks)
        nested = await client.subscribe(topics.inbox, cb=topics.answer_nested)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        replies = await client.listen(f"{topics.inbox}.*", topics.receive_reply)
        try:
            yield topics
        finally:
            tasks.cancel_scope.cancel()
            if not client.is_closed:
                await nested.unsubscribe()
                await replies.unsubscribe()


Handler = Callable[[msgspec.Raw, HandlerContext], Awaitable[object]]
Handlers = Mapping[str, Handler]
"""An agent: a handler for each type of message. A handler's result answers a request."""
AgentFactory = Callable[[AgentId], Handlers]

SCAN_INTERVAL = 5.0
"""Seconds between two scans for new keys: a notice of the server may have been lost."""
LONG_POLL = 5.0
MAX_DELIVERIES = 3
UNKNOWN = "UnknownMessage"


async def serve_agents(
    topics: TopicClient,
    agent_type: str,
    make: AgentFactory,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve all agents of a type, forever; other processes may serve the same type and share the work."""
    agent_id(f"{agent_type}/x")
    await retry_forever(lambda: topics.registry.add_type(agent_type))
    async with anyio.create_task_group() as tasks:
        pool = InstancePool(topics, agent_type, make, tasks)
        async with pool.watch_keys():
            await pool.scan()
            task_status.started()
            while True:
                await anyio.sleep(SCAN_INTERVAL)
                await pool.scan()


class InstancePool:
    """All instances of one type of agent in this process."""

    def __init__(self, topics: TopicClient, agent_type: str, make: AgentFactory, tasks: TaskGroup) -> None:
        self._topics = topics
        self._type = agent_type
        self._make = make
        self._tasks = tasks
        self._keys: set[str] = set()
        self.subscriptions: Sequence[Subscription] = ()

    @asynccontextmanager
    async def watch_keys(self) -> AsyncGenerator[None]:
        """Subscribe to messages for keys that have no instance yet."""
        subscriptions = [
            await self._topics.nats.subscribe(subject, cb=callback)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
            for subject, callback in (
                (f"{TOPICS}.>", self._on_topic),
                (f"{DIRECT}.{encode_token(self._type)}.*", self._on_direct),
                (CHANGED, self._on_change),
            )
        ]
        await retry_forever(self._topics.nats.flush)
        try:
            yield
        finally:
            with suppress(nats.errors.Error):
                for subscription in subscriptions:
                    await subscription.unsubscribe()

    async def scan(self) -> None:
        """Start instances for messages that were sent before we subscribed or while the server was away."""
        self.subscriptions = await self._topics.subscriptions()
        direct, topics = await retry_forever(lambda: self._topics.messages.keys(self._type))
        for key in direct | {source for kind, source in topics if self.is_subscribed_to(kind)}:
            self._start(key)

    def is_subscribed_to(self, topic_type: str) -> bool:
        return is_subscribed(self._type, topic_type, self.subscriptions)

    async def _on_topic(self, message: Msg) -> None:
        *_, kind, source = message.subject.split(".")
        if self.is_subscribed_to(decode_token(kind)):
            self._start(decode_token(source))

    async def _on_direct(self, message: Msg) -> None:
        self._start(decode_token(message.subject.rsplit(".", 1)[1]))

    async def _on_change(self, _: Msg) -> None:
        with suppress(nats.errors.Error):
            await self.scan()

    def _start(self, key: str) -> None:
        if key not in self._keys:
            self._keys.add(key)
            agent = AgentId(type=self._type, key=key)
            self._tasks.start_soon(AgentInstance(self._topics, self, agent, self._make(agent)).serve)


class AgentInstance:
    """One instance of an agent. The server delivers its envelopes one by one, to any process that serves it."""

    def __init__(self, topics: TopicClient, pool: InstancePool, agent: AgentId, handlers: Handlers) -> None:
        self._topics = topics
        self._pool = pool
        self._agent = agent
        self._handlers = handlers
        self._handled = 0

    async def serve(self) -> None:
        self._topics.instances[str(self._agent)] = self.answer
        queue = await retry_forever(lambda: self._topics.messages.agent_queue(self._agent))
        while True:
            (message,) = await retry_forever(lambda: queue.fetch(1, LONG_POLL))
            try:
                await self._handle(message)
            except anyio.get_cancelled_exc_class():
                with anyio.move_on_after(1.0, shield=True), suppress(nats.errors.Error):
                    await (message.ack() if self._was_handled(message) else message.nak())
                    await self._topics.nats.flush()
                raise

    async def answer(self, envelope: Envelope) -> ReplyMessage:
        """Handle an envelope; an error becomes the answer."""
        handler = self._handlers.get(envelope.type)
        if handler is None:
            return ReplyMessage(error=UNKNOWN, text=f"{self._agent} has no handler for '{envelope.type}'")
        try:
            result = await handler(envelope.data, HandlerContext(self._topics, self._agent, envelope))
            return ReplyMessage(data=msgspec.Raw(ENCODER.encode(result)))
        except Exception as error:  # a handler's failure must reach the sender or the dead letters
            return ReplyMessage(error=type(error).__name__, text=str(error)[:2000])

    async def _handle(self, message: Msg) -> None:
        envelope = ENVELOPES.decode(message.data)
        if not self._was_handled(message) and self._is_relevant(envelope):
            is_done, delivered = False, message.metadata.num_delivered
            extending = asyncio.create_task(
                extend_lease(message)
            )  # a task group would cost more than most handlers
            try:
                is_done = await self._process(envelope, delivered)
                self._handled = message.metadata.sequence.stream if is_done else self._handled
            finally:
                extending.cancel()
            if not is_done:
                await message.nak(delay=0.1 * 2**delivered)
                return
        await message.ack()

    def _was_handled(self, message: Msg) -> bool:
        """Whether we have handled it: a server that crashed may have lost the acknowledgement."""
        return message.metadata.sequence.stream <= self._handled

    def _is_relevant(self, envelope: Envelope) -> bool:
        if envelope.topic:
            return envelope.sender != str(self._agent) and self._pool.is_subscribed_to(
                topic_id(envelope.topic).type
            )
        return not envelope.deadline or time() < envelope.deadline

    async def _process(self, envelope: Envelope, delivered: int) -> bool:
        """Handle an envelope; returns whether it is finished: answered, handled or a dead letter."""
        answer = await self.answer(envelope)
        if envelope.reply:
            await self._topics.nats.publish(envelope.reply, ENCODER.encode(answer))
        if not answer.error:
            return True
        if not envelope.reply and answer.error != UNKNOWN and delivered < MAX_DELIVERIES:
            return False
        if not envelope.reply or answer.error == UNKNOWN:
            reason = f"{answer.error}: {answer.text}"
            dead_letter = DeadLetter(recipient=str(self._agent), reason=reason, envelope=envelope)
            await self._topics.messages.add_dead_letter(dead_letter, self._agent)
        return True


async def extend_lease(message: Msg) -> None:
    """Renew the lease while a handler runs: the server would deliver the envelope again."""
    while True:
        await anyio.sleep(LEASE / 3)
        with suppress(nats.errors.Error):
            await message.in_progress()


Post, Desk, Parcel = TopicClient, HandlerContext, Envelope
"""Original names, which programs may still use."""

__all__ = [
    "AgentFactory",
    "AgentId",
    "DeadLetter",
    "Desk",
    "Envelope",
    "Handler",
    "HandlerContext",
    "Handlers",
    "Parcel",
    "Post",
    "PrefixSubscription",
    "RemoteFailed",
    "Subscription",
    "TopicClient",
    "TopicId",
    "TypeSubscription",
    "Unreachable",
    "open_topics",
    "serve_agents",
]


@asynccontextmanager
async def open_topics(
    url: str = "", *, token_file: str | Path | None = None, tls_ca: str = "", wait: float = 30.0
) -> AsyncGenerator[TopicClient]:
    """The topics of a server, which may take `wait` seconds to start; leaving the context stops the agents served.

    On the machine of the host no arguments are needed: the address and the token are in its folder.
    """
    path = Path(token_file) if token_file is not None else None
    endpoint = endpoint_of(ConnectOptions(url=url, token_file=path, tls_ca=tls_ca))
    async with connect_nats(endpoint, wait=wait) as client, open_topic_client(client) as topics:
        yield topics
