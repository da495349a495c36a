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
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.cluster.client import subscribe
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
    Reply,
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

Respond = Callable[[Envelope], Awaitable[Reply]]


class TopicClient:
    """Publishes, requests and subscribes, for one process."""

    def __init__(self, client: Client, messages: MessageStream, registry: Registry, tasks: TaskGroup) -> None:
        self.nats = client
        self._tasks = tasks
        self.messages = messages
        self.registry = registry
        self.inbox = client.new_inbox()
        self._numbers = count()
        self._replies: dict[str, asyncio.Future[bytes]] = {}
        self.instances: dict[str, Respond] = {}
        """The agents of this process, for requests that come back to one that waits."""

    async def publish(self, topic: str, kind: str, data: object, sender: str = "") -> str:
        """Kept for all who are subscribed, now or later; returns the envelope's id."""
        return await self.send(topic, new_envelope(kind, data, sender))

    async def send(self, topic: str, envelope: Envelope) -> str:
        where = topic_id(topic)
        await self.messages.send_to_topic(where, replace(envelope, topic=topic, subject=topic))
        return envelope.id

    async def request(
        self, recipient: str, kind: str, data: object, deadline: float = 60.0, sender: str = ""
    ) -> msgspec.Raw:
        """The recipient's answer, as JSON. Waits `deadline` seconds, also for a recipient that is restarting."""
        return await self.ask(recipient, new_envelope(kind, data, sender), deadline)

    async def ask(self, recipient: str, envelope: Envelope, deadline: float) -> msgspec.Raw:
        agent = agent_id(recipient)
        if not await retry_forever(lambda: self.registry.knows(agent.type)):
            raise Unreachable(f"there is no agent of type '{agent.type}'", "is its process registered?")
        with self._await_reply() as (reply, heard):
            until = time() + deadline
            envelope = replace(envelope, recipient=recipient, subject=recipient, reply=reply, deadline=until)
            await self._deliver(agent, envelope)
            try:
                async with asyncio.timeout(deadline):
                    answer = REPLIES.decode(await heard)
            except TimeoutError as error:
                raise Unreachable(
                    f"{recipient} did not answer in {deadline:g} s", "allow it more time"
                ) from error
        if answer.error:
            raise RemoteFailed(f"{recipient} failed ({answer.error}: {answer.text})")
        return answer.data

    @contextmanager
    def _await_reply(self) -> Generator[tuple[str, asyncio.Future[bytes]]]:
        """One subscription for the replies to all requests: one for each would cost more than the reply."""
        number = str(next(self._numbers))
        heard = self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            yield f"{self.inbox}.{number}", heard
        finally:
            del self._replies[number]

    def receive_reply(self, message: Msg) -> None:
        heard = self._replies.get(message.subject.rsplit(".", 1)[1])
        if heard is not None and not heard.done():
            heard.set_result(message.data)

    async def _deliver(self, agent: AgentId, envelope: Envelope) -> None:
        """One that waits further up in the chain is at work already: it is asked where it is, not in its queue."""
        waiting = next((caller for caller in envelope.chain if caller.agent == str(agent)), None)
        if waiting is None:
            await self.messages.send_to_agent(agent, envelope)
        else:
            await self.nats.publish(waiting.inbox, ENCODER.encode(envelope))

    async def subscribe(self, subscription: Subscription) -> str:
        """Returns the subscription's id. Subscribing twice is subscribing once."""
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
        """A request to an agent that waits in this process for the very request that led to it."""
        envelope = ENVELOPES.decode(message.data)
        if work := self.instances.get(envelope.recipient):
            self._tasks.start_soon(self._answer, envelope, work)

    async def _answer(self, envelope: Envelope, work: Respond) -> None:
        await self.nats.publish(envelope.reply, ENCODER.encode(await work(envelope)))


class HandlerContext:
    """What a handler sends with: in its agent's name, with ids that are the same when it has to run again."""

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
        """The envelope, by its first name."""
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
async def open_topic_client(client: Client, replicas: int = 1) -> AsyncGenerator[TopicClient]:
    """The client of a process on its connection; leaving stops the agents that it serves."""
    messages = MessageStream(client)
    await retry_forever(lambda: messages.make(replicas))
    registry = await retry_forever(lambda: open_registry(client, replicas))
    async with anyio.create_task_group() as tasks:
        topics = TopicClient(client, messages, registry, tasks)
        inner = await client.subscribe(topics.inbox, cb=topics.answer_nested)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        answers = await subscribe(client, f"{topics.inbox}.*", topics.receive_reply)
        try:
            yield topics
        finally:
            tasks.cancel_scope.cancel()
            if not client.is_closed:
                await inner.unsubscribe()
                await answers.unsubscribe()


Handler = Callable[[msgspec.Raw, HandlerContext], Awaitable[object]]
Handlers = Mapping[str, Handler]
"""An agent: what it does with each type of message. What a handler returns answers a request."""
AgentFactory = Callable[[AgentId], Handlers]

SCAN_INTERVAL = 5.0
"""Seconds after which a pool looks for new keys by itself: the server's hint may have been lost on the way."""
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
    """Serve all agents of a type, for ever; other processes may serve the same type and share the work."""
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
        """Be told at once of what is written to keys that have no instance yet."""
        heard = [
            await self._topics.nats.subscribe(subject, cb=hear)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
            for subject, hear in (
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
                for one in heard:
                    await one.unsubscribe()

    async def scan(self) -> None:
        """Everything that was written before somebody listened, or while the server was away."""
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
    """One instance. The server hands out its envelopes one by one, whichever process asks for them."""

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

    async def answer(self, envelope: Envelope) -> Reply:
        """What the agent says to it; whatever goes wrong becomes part of the answer."""
        handler = self._handlers.get(envelope.type)
        if handler is None:
            return Reply(error=UNKNOWN, text=f"{self._agent} knows no message '{envelope.type}'")
        try:
            result = await handler(envelope.data, HandlerContext(self._topics, self._agent, envelope))
            return Reply(data=msgspec.Raw(ENCODER.encode(result)))
        except Exception as error:  # a handler's failure must reach the sender or the dead letters
            return Reply(error=type(error).__name__, text=str(error)[:2000])

    async def _handle(self, message: Msg) -> None:
        envelope = ENVELOPES.decode(message.data)
        if not self._was_handled(message) and self._is_relevant(envelope):
            done, delivered = False, message.metadata.num_delivered
            extending = asyncio.create_task(
                extend_lease(message)
            )  # plain: a group would cost more than most handlers
            try:
                done = await self._process(envelope, delivered)
                self._handled = message.metadata.sequence.stream if done else self._handled
            finally:
                extending.cancel()
            if not done:
                await message.nak(delay=0.1 * 2**delivered)
                return
        await message.ack()

    def _was_handled(self, message: Msg) -> bool:
        """A server that crashed may have forgotten that an envelope was done with; we have not."""
        return message.metadata.sequence.stream <= self._handled

    def _is_relevant(self, envelope: Envelope) -> bool:
        if envelope.topic:
            return envelope.sender != str(self._agent) and self._pool.is_subscribed_to(
                topic_id(envelope.topic).type
            )
        return not envelope.deadline or time() < envelope.deadline

    async def _process(self, envelope: Envelope, delivered: int) -> bool:
        """Whether the envelope is done with: answered, handled, or given up as a dead letter."""
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
    """The server would give the envelope to another after a while."""
    while True:
        await anyio.sleep(LEASE / 3)
        with suppress(nats.errors.Error):
            await message.in_progress()


Post, Desk, Parcel = TopicClient, HandlerContext, Envelope
"""The names that these had first; programs may still use them."""

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
    """The topics of a server, which may take `wait` seconds to come up; leaving stops the agents that are served.

    On the machine of the host nothing need be said: its address and its token are found where it keeps them.
    """
    path = Path(token_file) if token_file is not None else None
    endpoint = endpoint_of(ConnectOptions(url=url, token_file=path, tls_ca=tls_ca))
    async with connect_nats(endpoint, wait=wait) as client, open_topic_client(client) as topics:
        yield topics
