"""An AutoGen runtime on the cluster: what agents send each other is stored, handled once, and survives every process.

It takes the place of `SingleThreadedAgentRuntime` and of `GrpcWorkerAgentRuntime`: messages to an agent start in their
order and run at the same time, answers and errors come back to the sender, tokens cancel.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar, cast

from autogen_core import (
    JSON_DATA_CONTENT_TYPE,
    Agent,
    AgentId,
    AgentMetadata,
    AgentRuntime,
    AgentType,
    CancellationToken,
    InterventionHandler,
    MessageContext,
    MessageSerializer,
    Subscription,
    TopicId,
)
from autogen_core.exceptions import MessageDroppedException, NotAccessibleError
from nats.aio.msg import Msg
from opentelemetry.trace import TracerProvider

from septet.cluster.connection import retry_forever
from septet.cluster.endpoint import ConnectOptions, address_with_scheme, endpoint_of
from septet.protocols.autogen import observation
from septet.protocols.autogen.agents import AgentTable
from septet.protocols.autogen.envelopes import (
    CANCEL,
    DEAD,
    ENVELOPES,
    REPLY,
    Envelope,
    Kind,
    error_of,
    subjects_of,
)
from septet.protocols.autogen.incoming import Content, Delivery, Incoming
from septet.protocols.autogen.link import Link, open_link
from septet.protocols.autogen.observation import Observation
from septet.protocols.autogen.outgoing import NOTHING, Draft, Outgoing
from septet.protocols.autogen.serialization import Serializers
from septet.protocols.autogen.subscriptions import Subscriptions

T = TypeVar("T", bound=Agent)
SIGNALS = (signal.SIGTERM, signal.SIGINT)
STEP = 0.005
"""Seconds between two looks whether there is nothing left to do."""


class Runtime(AgentRuntime):
    """Serves agents of this process, and reaches those of all others that name the same host and namespace.

    `host_address` is that of a `RuntimeHost` or of `septet host`; without it, this machine's. `request_timeout` are the
    seconds after which a request fails, `history` those for which a type that is new to the namespace gets what was
    published before it was there. `stop` waits `grace` seconds for handlers.
    """

    def __init__(  # noqa: PLR0913  by name, as AutoGen's own runtimes have them
        self,
        host_address: str = "",
        *,
        token_file: str | Path | None = None,
        tls_ca: str = "",
        namespace: str = "default",
        replicas: int = 1,
        tracer_provider: TracerProvider | None = None,
        intervention_handlers: Sequence[InterventionHandler] | None = None,
        ignore_unhandled_exceptions: bool = True,
        payload_serialization_format: str = JSON_DATA_CONTENT_TYPE,
        request_timeout: float | None = None,
        history: float = 0.0,
        grace: float = 5.0,
    ) -> None:
        self._options = ConnectOptions(
            url=address_with_scheme(host_address) if host_address else "",
            token_file=Path(token_file) if token_file else None,
            tls_ca=tls_ca,
        )
        self._namespace, self._replicas = namespace, replicas
        self._ignores_exceptions = ignore_unhandled_exceptions
        self._request_timeout, self._history, self._grace = request_timeout, history, grace
        self._serializers = Serializers(payload_serialization_format)
        self._agents = AgentTable(self)
        self._subscriptions = Subscriptions()
        self._observation = Observation(self._serializers, tracer_provider, intervention_handlers or ())
        self._outgoing = Outgoing(self)
        self._incoming = Incoming(self, self._agents, self._serializers, self._outgoing, self._observation)
        self._incoming.on_exception = self._keep_exception
        self._exception: BaseException | None = None
        self._link: Link | None = None
        self._read: tuple[object, ...] = ()
        self._starting: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._sent_here = 0

    def start(self) -> Awaitable[None]:
        """Begin to handle messages. Whoever awaits this knows that the host was reached."""
        if self._starting is not None:
            raise RuntimeError("Runtime is already started")
        self._incoming.accepts = True
        self._starting = asyncio.ensure_future(self._serve())
        return self._starting

    async def _serve(self) -> None:
        """Tell the host what is served and read here: again whenever that changes."""
        link = await self._open()
        async with self._lock:
            types = self._agents.types
            subjects = (
                *subjects_of(link.root, types, self._subscriptions.all),
                f"{link.root}.{REPLY}.{link.shards.id}",
                f"{link.root}.{CANCEL}",
            )
            if (tuple(types), subjects) != self._read:
                await link.shards.serve(types, subjects, self._history)
                self._read = (tuple(types), subjects)

    async def _open(self) -> Link:
        async with self._lock:
            if self._link is None:
                link = self._link = await open_link(
                    endpoint_of(self._options), self._namespace, self._replicas, self._route
                )
                self._read = ()
                self._outgoing.use(link)
                self._incoming.use(link)
                await link.shards.serve(
                    [], [f"{link.root}.{REPLY}.{link.shards.id}", f"{link.root}.{CANCEL}"]
                )
            return self._link

    async def _linked(self) -> Link:
        """The connection, which also those have who have not started."""
        if self._starting is not None:
            await asyncio.shield(self._starting)
            return await self._open()
        link = await self._open()
        await link.shards.join(
            self._agents.types, self._history
        )  # what is sent before the start is handled, too
        return link

    def _route(self, kind: str, message: Msg) -> Sequence[Delivery]:
        """What a message means here."""
        envelope = ENVELOPES.decode(message.data)
        match kind:
            case "reply":
                self._outgoing.on_reply(envelope)
                return ()
            case "cancel":
                self._outgoing.tokens.cancel(envelope.token)
                return ()
            case "topic":
                sender = envelope.sender
                recipients = [
                    agent
                    for agent in self._subscriptions.recipients(envelope.topic)
                    if self._agents.serves(agent.type) and str(agent) != sender
                ]
            case _:
                recipients = [AgentId.from_str(envelope.recipient)]
        assert self._link is not None
        if envelope.runtime == self._link.shards.id:
            self._sent_here = max(0, self._sent_here - 1)
        content = Content(envelope, self._serializers)
        return [
            Delivery(self._incoming, content, agent, self._agents.shard(agent))
            for agent in recipients
            if not (self._agents.is_elsewhere(agent) and self._link.shards.is_shared(agent.type))
        ]

    async def send_message(
        self,
        message: object,
        recipient: AgentId,
        *,
        sender: AgentId | None = None,
        cancellation_token: CancellationToken | None = None,
        message_id: str | None = None,
        timeout: float | None = None,
    ) -> object:
        """Send a message and return the answer; an agent whose process is away answers when it is back.

        Raises what the recipient raised, UndeliverableException for a type that no process has ever served or a message
        that is too big, and TimeoutError after `timeout` seconds (default: the runtime's `request_timeout`).
        """
        observe = self._observation
        observe.note(message, observation.DIRECT, observation.SEND, sender, recipient)
        with observe.span("create", recipient, type(message).__name__):
            context = self._context(sender, None, cancellation_token, message_id)
            message = await observe.on_send(message, context, recipient)
            payload, trace = self._serializers.encode(message), observe.trace_headers()
            link = await self._linked()
            if self._agents.serves(recipient.type):
                self._sent_here += 1
            else:
                await self._outgoing.check_known(link, recipient.type)
            draft = Draft(payload, sender, message_id, cancellation_token, trace)
            timeout = timeout or self._request_timeout
            reply = await self._outgoing.request(link, "request", recipient, draft, timeout)
            answer = self._open_reply(reply)
            observe.note(answer, observation.RESPOND, observation.DELIVER, recipient, sender)
            return await observe.on_response(answer, recipient, sender)

    def _open_reply(self, reply: Envelope) -> object:
        if reply.kind == "error":
            raise self._outgoing.errors.pop(reply.request, None) or error_of(reply.payload)
        return self._serializers.decode(reply.payload)

    def _context(
        self,
        sender: AgentId | None,
        topic: TopicId | None,
        token: CancellationToken | None,
        message_id: str | None,
    ) -> MessageContext:
        """What an intervention handler is told."""
        return MessageContext(
            sender=sender,
            topic_id=topic,
            is_rpc=topic is None,
            cancellation_token=token or CancellationToken(),
            message_id=message_id or "",
        )

    async def publish_message(
        self,
        message: object,
        topic_id: TopicId,
        *,
        sender: AgentId | None = None,
        cancellation_token: CancellationToken | None = None,
        message_id: str | None = None,
    ) -> None:
        """Store a message for all agents that are subscribed, also those whose process is away."""
        observe = self._observation
        observe.note(message, observation.PUBLISH, observation.SEND, sender, topic_id)
        with observe.span("create", topic_id, type(message).__name__):
            try:
                context = self._context(sender, topic_id, cancellation_token, message_id)
                message = await observe.on_publish(message, context)
            except MessageDroppedException:
                return
            payload, trace = self._serializers.encode(message), observe.trace_headers()
            link = await self._linked()
            if any(self._agents.serves(one.type) for one in self._subscriptions.recipients(str(topic_id))):
                self._sent_here += 1
            draft = Draft(payload, sender, message_id, cancellation_token, trace)
            await self._outgoing.publish(link, topic_id, draft)

    async def register_factory(
        self,
        type: str | AgentType,  # noqa: A002  AutoGen's name
        agent_factory: Callable[[], T | Awaitable[T]],
        *,
        expected_class: "type[T] | None" = None,
    ) -> AgentType:
        """Serve agents of a type. Other processes may serve it too: each agent lives in one of them at a time."""
        agent_type = AgentType(type) if isinstance(type, str) else type
        self._agents.add_factory(agent_type.type, agent_factory, expected_class)
        await self._update()
        return agent_type

    async def register_agent_instance(self, agent_instance: Agent, agent_id: AgentId) -> AgentId:
        await self._agents.add_instance(agent_instance, agent_id)
        await self._update()
        return agent_id

    async def add_subscription(self, subscription: Subscription) -> None:
        self._subscriptions.add(subscription)
        await self._update()

    async def remove_subscription(self, id: str) -> None:  # noqa: A002  AutoGen's name
        self._subscriptions.remove(id)
        await self._update()

    async def _update(self) -> None:
        if self._starting is not None:
            await asyncio.shield(self._starting)
            await self._serve()

    def add_message_serializer(
        self, serializer: MessageSerializer[object] | Sequence[MessageSerializer[object]]
    ) -> None:
        self._serializers.add(serializer)

    async def try_get_underlying_agent_instance(
        self,
        id: AgentId,  # noqa: A002  AutoGen's name
        type: type[T] = Agent,  # noqa: A002  AutoGen's name
    ) -> T:
        if not self._agents.serves(id.type):
            if self._link is not None and await self._outgoing.knows(self._link, id.type):
                raise NotAccessibleError(f"{id} is in another process")
            raise LookupError(f"Agent with name {id.type} not found.")
        agent = await self._agents.get(id)
        if not isinstance(agent, type):
            raise TypeError(
                f"Agent with name {id.type} is not of type {type.__name__}, but {agent.__class__.__name__}"
            )
        return agent

    async def get(
        self,
        id_or_type: AgentId | AgentType | str,
        /,
        key: str = "default",
        *,
        lazy: bool = True,
    ) -> AgentId:
        """The id of an agent; unless `lazy`, the agent is made now."""
        if isinstance(id_or_type, AgentId):
            agent_id = id_or_type
        else:
            agent_id = AgentId(id_or_type if isinstance(id_or_type, str) else id_or_type.type, key)
        if not lazy:
            await self.agent_metadata(agent_id)
        return agent_id

    async def save_state(self) -> Mapping[str, object]:
        """The states of all agents that this runtime has made."""
        return {
            str(agent_id): dict(await agent.save_state())
            for agent_id, agent in [*self._agents.agents.items()]
        }

    async def load_state(self, state: Mapping[str, object]) -> None:
        """The states of all agents whose types this runtime serves; of others nothing is loaded."""
        for name, one in state.items():
            agent_id = AgentId.from_str(name)
            if self._agents.serves(agent_id.type):
                await (await self._agents.get(agent_id)).load_state(cast(Mapping[str, object], one))

    async def agent_metadata(self, agent: AgentId) -> AgentMetadata:
        if self._is_here(agent):
            return (await self._agents.get(agent)).metadata
        return cast(AgentMetadata, await self._ask("metadata", agent))

    async def agent_save_state(self, agent: AgentId) -> Mapping[str, object]:
        if self._is_here(agent):
            return await (await self._agents.get(agent)).save_state()
        return cast(Mapping[str, object], await self._ask("save", agent))

    async def agent_load_state(self, agent: AgentId, state: Mapping[str, object]) -> None:
        if self._is_here(agent):
            await (await self._agents.get(agent)).load_state(state)
        else:
            await self._ask("load", agent, dict(state))

    def _is_here(self, agent: AgentId) -> bool:
        """Whether the agent lives in this process, or would."""
        if not self._agents.serves(agent.type):
            return False
        if self._starting is None or self._link is None:
            return True
        shards = self._link.shards
        return not shards.is_shared(agent.type) or shards.owns(self._agents.shard(agent))

    async def _ask(self, kind: Kind, agent: AgentId, content: object = None) -> object:
        link = await self._linked()
        if not self._agents.serves(agent.type):
            await self._outgoing.check_known(link, agent.type)
        payload = NOTHING if content is None else self._serializers.encode(content)
        timeout = self._request_timeout
        return self._open_reply(await self._outgoing.request(link, kind, agent, Draft(payload), timeout))

    async def dead_letters(self) -> Sequence[tuple[AgentId, str, object]]:
        """What agents could not handle, oldest first: the agent, why, and the message."""
        link = await self._linked()
        stored = await retry_forever(lambda: link.log.all(f"{link.root}.{DEAD}.*"))
        letters = [ENVELOPES.decode(one.body) for one in stored]
        return [
            (AgentId.from_str(one.recipient), repr(error_of(one.payload)), self._content(one.cause))
            for one in letters
        ]

    def _content(self, envelope: Envelope | None) -> object:
        if envelope is None:
            return None
        try:
            return self._serializers.decode(envelope.payload)
        except (ValueError, TypeError):
            return envelope.payload.data

    async def stop(self) -> None:
        """Stop handling messages. Those at work are completed; all others are handled after the next start.

        Handlers that take longer than `grace` seconds are cancelled, and their messages handled again.
        """
        if self._starting is None:
            raise RuntimeError("Runtime is not started")
        self._incoming.accepts = False
        running = self._incoming.running - {asyncio.current_task()}
        if running and not self._exception:
            await asyncio.wait(running, timeout=self._grace)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._starting.cancel()
        self._starting = None
        await self._close_link()
        exception, self._exception = self._exception, None
        if exception is not None:
            raise exception

    async def _close_link(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def stop_when_idle(self) -> None:
        """Stop when every message for the agents of this process has been handled, and every request answered."""
        if self._starting is None:
            raise RuntimeError("Runtime is not started")
        link = await self._linked()
        while self._exception is None and not await self._is_idle(link):  # noqa: ASYNC110  the server announces nothing
            await asyncio.sleep(STEP)
        await self.stop()

    async def _is_idle(self, link: Link) -> bool:
        if not self._is_quiet(link) or not await retry_forever(link.shards.reader.is_at_end):
            return False
        return self._is_quiet(link)

    def _is_quiet(self, link: Link) -> bool:
        return not (self._incoming.running or self._outgoing.is_waiting or link.shards.is_claiming)

    async def stop_when(self, condition: Callable[[], bool]) -> None:
        if self._starting is None:
            raise RuntimeError("Runtime is not started")
        while not condition():  # noqa: ASYNC110  the caller's condition announces nothing
            await asyncio.sleep(STEP)
        await self.stop()

    async def stop_when_signal(self, signals: Sequence[signal.Signals] = SIGNALS) -> None:
        await on_signal(signals)
        await self.stop()

    async def close(self) -> None:
        """Stop if need be, and close all agents that were made here."""
        if self._starting is not None:
            await self.stop()
        await self._close_link()
        await self._agents.close()

    async def __aenter__(self) -> "Runtime":
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def unprocessed_messages_count(self) -> int:
        """How many messages to agents of this process it has sent that none of them has begun to handle."""
        return self._sent_here

    async def process_next(self) -> None:
        """Handle one message, without `start`."""
        if self._starting is None:
            (await self._open()).shards.reader.steps = True
            await self.start()
        link = await self._linked()
        reader, began = link.shards.reader, self._incoming.began
        began.clear()
        while not began.is_set() and self._exception is None:
            if not (reader.is_waiting or link.shards.is_claiming):
                reader.step()
            with suppress(TimeoutError):
                async with asyncio.timeout(STEP):
                    await began.wait()
        if self._exception is not None:
            exception, self._exception = self._exception, None
            raise exception

    def _keep_exception(self, error: BaseException) -> None:
        """An exception of an event's handler is raised by the next `stop`, unless it is ignored."""
        if not self._ignores_exceptions:
            self._exception = error


async def on_signal(signals: Sequence[signal.Signals]) -> None:
    """Wait for one of the signals."""
    received, loop = asyncio.Event(), asyncio.get_running_loop()
    for one in signals:
        loop.add_signal_handler(one, received.set)
    try:
        await received.wait()
    finally:
        for one in signals:
            loop.remove_signal_handler(one)
