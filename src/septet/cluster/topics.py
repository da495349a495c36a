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

from septet.cluster.addresses import (
    AgentId,
    PrefixSubscription,
    Subscription,
    TopicId,
    TypeSubscription,
    agent_id,
    heard_by,
    topic_id,
)
from septet.cluster.client import subscribe
from septet.cluster.connection import connect, retry_forever
from septet.cluster.endpoint import ConnectOptions, endpoint_of
from septet.cluster.mail import (
    ANSWERS,
    CHANGED,
    DIRECT,
    ENCODER,
    LEASE,
    PARCELS,
    TOPICS,
    Answered,
    Caller,
    DeadLetter,
    Mail,
    Parcel,
    Registry,
    new_parcel,
    open_registry,
)
from septet.common.text import decode_token, encode_token
from septet.errors import BadUsage, RemoteFailed, Unreachable

Answer = Callable[[Parcel], Awaitable[Answered]]


class Post:
    """One process's part of the post."""

    def __init__(self, client: Client, mail: Mail, registry: Registry, tasks: TaskGroup) -> None:
        self.client = client
        self._tasks = tasks
        self.mail = mail
        self.registry = registry
        self.inbox = client.new_inbox()
        self._numbers = count()
        self._asked: dict[str, asyncio.Future[bytes]] = {}
        self.working: dict[str, Answer] = {}
        """The agents of this process, for requests that come back to one that waits."""

    async def publish(self, topic: str, kind: str, data: object, sender: str = "") -> str:
        """Kept for all who are subscribed, now or later; returns the parcel's id."""
        return await self.send(topic, new_parcel(kind, data, sender))

    async def send(self, topic: str, parcel: Parcel) -> str:
        where = topic_id(topic)
        await self.mail.send_to_topic(where, replace(parcel, topic=topic, subject=topic))
        return parcel.id

    async def request(
        self, recipient: str, kind: str, data: object, deadline: float = 60.0, sender: str = ""
    ) -> msgspec.Raw:
        """The recipient's answer, as JSON. Waits `deadline` seconds, also for a recipient that is restarting."""
        return await self.ask(recipient, new_parcel(kind, data, sender), deadline)

    async def ask(self, recipient: str, parcel: Parcel, deadline: float) -> msgspec.Raw:
        agent = agent_id(recipient)
        if not await retry_forever(lambda: self.registry.knows(agent.type)):
            raise Unreachable(f"there is no agent of type '{agent.type}'", "is its process registered?")
        with self._waiting() as (reply, heard):
            until = time() + deadline
            parcel = replace(parcel, recipient=recipient, subject=recipient, reply=reply, deadline=until)
            await self._deliver(agent, parcel)
            try:
                async with asyncio.timeout(deadline):
                    answer = ANSWERS.decode(await heard)
            except TimeoutError as error:
                raise Unreachable(
                    f"{recipient} did not answer in {deadline:g} s", "allow it more time"
                ) from error
        if answer.error:
            raise RemoteFailed(f"{recipient} failed ({answer.error}: {answer.text})")
        return answer.data

    @contextmanager
    def _waiting(self) -> Generator[tuple[str, asyncio.Future[bytes]]]:
        """One subscription hears the answers to all requests: one for each would cost more than the answer."""
        number = str(next(self._numbers))
        heard = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            yield f"{self.inbox}.{number}", heard
        finally:
            del self._asked[number]

    def hear_answer(self, message: Msg) -> None:
        heard = self._asked.get(message.subject.rsplit(".", 1)[1])
        if heard is not None and not heard.done():
            heard.set_result(message.data)

    async def _deliver(self, agent: AgentId, parcel: Parcel) -> None:
        """One that waits further up in the chain is at work already: it is asked where it is, not in its queue."""
        waiting = next((caller for caller in parcel.chain if caller.agent == str(agent)), None)
        if waiting is None:
            await self.mail.send_to_agent(agent, parcel)
        else:
            await self.client.publish(waiting.inbox, ENCODER.encode(parcel))

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
        return await retry_forever(self.mail.dead_letters)

    async def answer_inner(self, message: Msg) -> None:
        """A request to an agent that waits in this process for the very request that led to it."""
        parcel = PARCELS.decode(message.data)
        if work := self.working.get(parcel.recipient):
            self._tasks.start_soon(self._answer, parcel, work)

    async def _answer(self, parcel: Parcel, work: Answer) -> None:
        await self.client.publish(parcel.reply, ENCODER.encode(await work(parcel)))


class Desk:
    """What a handler sends with: in its agent's name, with ids that are the same when it has to run again."""

    def __init__(self, post: Post, agent: AgentId, parcel: Parcel) -> None:
        self._post = post
        self._parcel = parcel
        self._sent = 0
        self.agent = agent

    @property
    def parcel(self) -> Parcel:
        """The message that is being handled."""
        return self._parcel

    async def publish(self, topic: str, kind: str, data: object) -> str:
        return await self._post.send(topic, self._next(kind, data))

    async def request(self, recipient: str, kind: str, data: object, deadline: float = 60.0) -> msgspec.Raw:
        caller = Caller(agent=str(self.agent), inbox=self._post.inbox)
        parcel = replace(self._next(kind, data), chain=(*self._parcel.chain, caller))
        return await self._post.ask(recipient, parcel, deadline)

    def _next(self, kind: str, data: object) -> Parcel:
        self._sent += 1
        return new_parcel(kind, data, str(self.agent), f"{self._parcel.id}:{self.agent}:{self._sent}")


@asynccontextmanager
async def open_post(client: Client, replicas: int = 1) -> AsyncGenerator[Post]:
    """The post as seen from this process; leaving stops the agents that it serves."""
    mail = Mail(client)
    await retry_forever(lambda: mail.make(replicas))
    registry = await retry_forever(lambda: open_registry(client, replicas))
    async with anyio.create_task_group() as tasks:
        post = Post(client, mail, registry, tasks)
        inner = await client.subscribe(post.inbox, cb=post.answer_inner)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        answers = await subscribe(client, f"{post.inbox}.*", post.hear_answer)
        try:
            yield post
        finally:
            tasks.cancel_scope.cancel()
            if not client.is_closed:
                await inner.unsubscribe()
                await answers.unsubscribe()


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
    await retry_forever(lambda: post.registry.add_type(agent_type))
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
                (f"{DIRECT}.{encode_token(self._type)}.*", self._hear_direct),
                (CHANGED, self._hear_change),
            )
        ]
        await retry_forever(self._post.client.flush)
        try:
            yield
        finally:
            with suppress(nats.errors.Error):
                for one in heard:
                    await one.unsubscribe()

    async def look(self) -> None:
        """Everything that was written before somebody listened, or while the server was away."""
        self.subscriptions = await self._post.subscriptions()
        direct, topics = await retry_forever(lambda: self._post.mail.keys(self._type))
        for key in direct | {source for kind, source in topics if self.hears(kind)}:
            self._open(key)

    def hears(self, topic_type: str) -> bool:
        return heard_by(self._type, topic_type, self.subscriptions)

    async def _hear_topic(self, message: Msg) -> None:
        *_, kind, source = message.subject.split(".")
        if self.hears(decode_token(kind)):
            self._open(decode_token(source))

    async def _hear_direct(self, message: Msg) -> None:
        self._open(decode_token(message.subject.rsplit(".", 1)[1]))

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
        queue = await retry_forever(lambda: self._post.mail.mailbox(self._agent))
        while True:
            (message,) = await retry_forever(lambda: queue.fetch(1, LONG_POLL))
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


__all__ = [
    "AgentId",
    "DeadLetter",
    "Desk",
    "Handler",
    "Handlers",
    "Parcel",
    "Post",
    "PrefixSubscription",
    "RemoteFailed",
    "Subscription",
    "TopicId",
    "TypeSubscription",
    "Unreachable",
    "open_topics",
    "serve_agents",
]


@asynccontextmanager
async def open_topics(
    url: str = "", *, token_file: str | Path | None = None, tls_ca: str = "", wait: float = 30.0
) -> AsyncGenerator[Post]:
    """The topics of a server, which may take `wait` seconds to come up; leaving stops the agents that are served.

    On the machine of the host nothing need be said: its address and its token are found where it keeps them.
    """
    path = Path(token_file) if token_file is not None else None
    endpoint = endpoint_of(ConnectOptions(url=url, token_file=path, tls_ca=tls_ca))
    async with connect(endpoint, wait=wait) as client, open_post(client) as post:
        yield post
