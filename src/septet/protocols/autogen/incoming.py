"""What a runtime gets: messages become handlers at work, and their outcome goes back to who asked."""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import time
from typing import cast

from autogen_core import Agent, AgentId, MessageContext, MessageHandlerContext, TopicId, UnknownPayload
from autogen_core.exceptions import CantHandleException, UndeliverableException

from septet.cluster.message_log import Fence
from septet.common.text import encode_token
from septet.protocols.autogen import observation
from septet.protocols.autogen.agents import AgentTable
from septet.protocols.autogen.envelopes import DEAD, Envelope, Kind, failure_of, seal
from septet.protocols.autogen.handling import HANDLING, Handling
from septet.protocols.autogen.link import Link
from septet.protocols.autogen.observation import Observation
from septet.protocols.autogen.outgoing import Outgoing
from septet.protocols.autogen.serialization import Payload, Serializers

LOG = logging.getLogger("autogen_core")
MAX_ANSWERS = 1000
"""Answers that are kept for requests which come again."""


class Content:
    """A message that is read once, for all its recipients here."""

    def __init__(self, envelope: Envelope, serializers: Serializers) -> None:
        self.envelope = envelope
        self._serializers = serializers

    @cached_property
    def message(self) -> object:
        """Raises CantHandleException for what nobody here can read."""
        try:
            message = self._serializers.decode(self.envelope.payload)
        except (ValueError, TypeError) as error:
            raise CantHandleException(
                f"a message of type '{self.envelope.type}' cannot be read: {error}"
            ) from error
        if isinstance(message, UnknownPayload) and not self._serializers.knows(UnknownPayload.__name__):
            raise CantHandleException(f"no agent here knows messages of type '{message.type_name}'")
        return message


@dataclass(frozen=True)
class Delivery:
    """A message for one agent of this runtime."""

    incoming: "Incoming"
    content: Content
    agent: AgentId
    shard: str

    def start(self, fence: Fence, finish: Callable[[], None]) -> None:
        self.incoming.start(self, fence, finish)


class Incoming:
    def __init__(
        self,
        runtime: object,
        agents: AgentTable,
        serializers: Serializers,
        outgoing: Outgoing,
        observation: Observation,
    ) -> None:
        self._runtime = runtime
        self._agents = agents
        self._serializers = serializers
        self._outgoing = outgoing
        self._observation = observation
        self._answers: OrderedDict[str, asyncio.Future[tuple[Kind, Payload]]] = OrderedDict()
        self._running: dict[asyncio.Task[None], str] = {}
        self._link: Link | None = None
        self._names: set[str] = set()
        """The names under which this runtime has served shards: one for each start."""
        self.began = asyncio.Event()
        """Set when a handler begins."""
        self.accepts = True
        """Whether handlers are started; what is not is handled after the next start, here or elsewhere."""
        self.on_exception: Callable[[BaseException], None] = lambda error: None

    @property
    def running(self) -> set[asyncio.Task[None]]:
        return set(self._running)

    def use(self, link: Link) -> None:
        self._link = link
        self._names.add(link.shards.id)
        link.shards.on_loss = self._drop
        link.shards.on_claim = self._claim

    def _claim(self, shard: str, before: str) -> None:
        if before and before not in self._names:
            self._agents.drop(shard)  # made here, but another process served it since

    def start(self, delivery: Delivery, fence: Fence, finish: Callable[[], None]) -> None:
        if self.accepts:
            task = asyncio.create_task(self._handle(delivery, fence, finish))
            self._running[task] = delivery.shard
            task.add_done_callback(self._running.pop)
        self.began.set()

    def _drop(self, shard: str) -> None:
        """Another process serves the shard: what runs here has no effect any more."""
        LOG.warning("another process serves %s now", shard)
        self._agents.drop(shard)
        for task, its_shard in self._running.items():
            if its_shard == shard:
                task.cancel()

    async def _handle(self, delivery: Delivery, fence: Fence, finish: Callable[[], None]) -> None:
        kind = delivery.content.envelope.kind
        try:
            await (self._handle_event if kind == "publish" else self._handle_request)(delivery, fence)
        except asyncio.CancelledError:
            if self.accepts:  # the shard is lost; else it is stopped, and remains to be done
                finish()
            raise
        except UndeliverableException:
            LOG.exception("the outcome of %s could not be stored", delivery.content.envelope.id)
        finish()

    async def _handle_event(self, delivery: Delivery, fence: Fence) -> None:
        envelope, agent_id = delivery.content.envelope, delivery.agent
        try:
            with self._observation.span(
                "publish", TopicId.from_str(envelope.topic), envelope.type, trace_of(envelope)
            ):
                agent = await self._agents.get(agent_id)
                message = delivery.content.message
                self._observation.note(
                    message, observation.PUBLISH, observation.DELIVER, sender_of(envelope), None
                )
                await self._call(agent, message, delivery, fence)
        except BaseException as error:
            if is_stopped():
                raise
            LOG.error("Error processing publish message for %s", agent_id, exc_info=True)
            self._observation.note_failure(envelope.type, agent_id, error)
            await self._add_dead_letter(delivery, error)
            self.on_exception(error)

    async def _handle_request(self, delivery: Delivery, fence: Fence) -> None:
        """Handle a request once, however often it comes, and answer each."""
        envelope = delivery.content.envelope
        if envelope.expires and time() > envelope.expires:
            return
        before = self._answers.get(envelope.id)
        if before is None:
            before = self._answers[envelope.id] = asyncio.get_running_loop().create_future()
            if len(self._answers) > MAX_ANSWERS:
                self._answers.popitem(last=False)
            try:
                before.set_result(await self._answer(delivery, fence))
            except BaseException:
                before.cancel()
                del self._answers[envelope.id]
                raise
        kind, payload = await asyncio.shield(before)
        assert self._link is not None
        await self._outgoing.reply(self._link, envelope, kind, payload, fence)

    async def _answer(self, delivery: Delivery, fence: Fence) -> tuple[Kind, Payload]:
        envelope = delivery.content.envelope
        try:
            with self._observation.span("send", delivery.agent, envelope.type, trace_of(envelope)):
                agent = await self._agents.get(delivery.agent)
                result = await self._perform(agent, delivery, fence)
                return "reply", self._serializers.encode(result)
        except BaseException as error:
            if is_stopped():
                raise
            self._observation.note_failure(envelope.type, delivery.agent, error)
            if self._link is not None and envelope.runtime == self._link.shards.id:
                self._outgoing.errors[envelope.id] = error
            return "error", failure_of(error)

    async def _perform(self, agent: Agent, delivery: Delivery, fence: Fence) -> object:
        """What the request is for: the agent, or its state and description."""
        envelope = delivery.content.envelope
        match envelope.kind:
            case "metadata":
                return dict(agent.metadata)
            case "save":
                return dict(await agent.save_state())
            case "load":
                await agent.load_state(cast(Mapping[str, object], json.loads(envelope.payload.data)))
                return None
            case _:
                message = delivery.content.message
                sender = sender_of(envelope)
                self._observation.note(
                    message, observation.DIRECT, observation.DELIVER, sender, delivery.agent
                )
                result = await self._call(agent, message, delivery, fence)
                self._observation.note(result, observation.RESPOND, observation.SEND, delivery.agent, sender)
                return result

    async def _call(self, agent: Agent, message: object, delivery: Delivery, fence: Fence) -> object:
        envelope = delivery.content.envelope
        context = MessageContext(
            sender=sender_of(envelope),
            topic_id=TopicId.from_str(envelope.topic) if envelope.topic else None,
            is_rpc=not envelope.topic,
            cancellation_token=self._outgoing.tokens.find(envelope.token),
            message_id=envelope.messageid or envelope.id,
        )
        HANDLING.set(Handling(self._runtime, delivery.agent, envelope.id, fence))  # the task's own
        with (
            MessageHandlerContext.populate_context(agent.id),
            self._observation.span("process", agent.id, envelope.type, trace_of(envelope)),
        ):
            return await agent.on_message(message, ctx=context)

    async def _add_dead_letter(self, delivery: Delivery, error: BaseException) -> None:
        assert self._link is not None
        agent, cause = delivery.agent, delivery.content.envelope
        identity = f"{cause.id} {agent}:dead"
        failure = failure_of(error)
        envelope = seal("dead", identity, failure, recipient=str(agent), topic=cause.topic, cause=cause)
        subject = f"{self._link.root}.{DEAD}.{encode_token(agent.type)}"
        try:
            await self._outgoing.append(self._link, subject, envelope, identity, None)
        except UndeliverableException:
            LOG.warning("a message that %s could not handle could not be kept", agent)


def is_stopped() -> bool:
    """Whether this handler is cancelled from outside: by the runtime, not by a token."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def sender_of(envelope: Envelope) -> AgentId | None:
    return AgentId.from_str(envelope.sender) if envelope.sender else None


def trace_of(envelope: Envelope) -> Mapping[str, str]:
    return (
        {"traceparent": envelope.traceparent, "tracestate": envelope.tracestate}
        if envelope.traceparent
        else {}
    )
