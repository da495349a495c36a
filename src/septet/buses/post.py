"""Messages between agents on many machines: topics, subscriptions, direct requests, dead letters."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from time import time

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.buses.addresses import AgentId, Subscription, agent_id, topic_id
from septet.buses.mail import Mail
from septet.buses.parcels import ANSWERS, ENCODER, PARCELS, Answered, Caller, DeadLetter, Parcel, new_parcel
from septet.buses.patience import patiently
from septet.buses.registry import Registry, open_registry
from septet.errors import BadUsage, RemoteFailed, Unreachable
from septet.wires.ears import listen

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
        if not await patiently(lambda: self.registry.knows(agent.type)):
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
        await patiently(lambda: self.registry.add(subscription))
        return subscription.id

    async def unsubscribe(self, identity: str) -> None:
        if not await patiently(lambda: self.registry.remove(identity)):
            raise BadUsage(f"there is no subscription '{identity}'", "list them first")

    async def subscriptions(self) -> Sequence[Subscription]:
        return await patiently(self.registry.subscriptions)

    async def dead_letters(self) -> Sequence[DeadLetter]:
        return await patiently(self.mail.dead_letters)

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
    await patiently(lambda: mail.make(replicas))
    registry = await patiently(lambda: open_registry(client, replicas))
    async with anyio.create_task_group() as tasks:
        post = Post(client, mail, registry, tasks)
        inner = await client.subscribe(post.inbox, cb=post.answer_inner)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        answers = await listen(client, f"{post.inbox}.*", post.hear_answer)
        try:
            yield post
        finally:
            tasks.cancel_scope.cancel()
            if not client.is_closed:
                await inner.unsubscribe()
                await answers.unsubscribe()
