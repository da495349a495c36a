"""Messages between agents on many machines: addresses, envelopes, the stream that stores them, and the registry.

Agents are addressed by type and key, topics by type and source. An agent of type `writer` that is subscribed to topics
of type `draft` gets what is published to `draft/essay-1` as the instance `writer/essay-1`: the topic's source is the
agent's key. An envelope is a CloudEvent whose delivery data are extension attributes.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from secrets import token_hex
from time import monotonic

import anyio
import msgspec
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, StorageType, StreamConfig
from nats.js.client import JetStreamContext
from nats.js.kv import KeyValue

from septet.common.text import decode_token, encode_token
from septet.common.values import Value
from septet.errors import BadUsage, Unreachable

TYPE_NAME = re.compile(r"[\w\-.:=]+", re.ASCII)


class AgentId(Value):
    type: str
    key: str

    def __str__(self) -> str:
        return f"{self.type}/{self.key}"


class TopicId(Value):
    type: str
    source: str

    def __str__(self) -> str:
        return f"{self.type}/{self.source}"


class TypeSubscription(Value, tag="type"):
    """Subscribes agents of a type to topics of exactly this type."""

    topic: str
    agent: str

    @property
    def id(self) -> str:
        return f"type.{encode_token(self.topic)}.{encode_token(self.agent)}"

    def covers(self, topic_type: str) -> bool:
        return topic_type == self.topic


class PrefixSubscription(Value, tag="prefix"):
    """Subscribes agents of a type to topics whose type has this prefix."""

    prefix: str
    agent: str

    @property
    def id(self) -> str:
        return f"prefix.{encode_token(self.prefix)}.{encode_token(self.agent)}"

    def covers(self, topic_type: str) -> bool:
        return topic_type.startswith(self.prefix)


Subscription = TypeSubscription | PrefixSubscription


def agent_id(text: str) -> AgentId:
    """Parse `writer/essay-1`. Raises BadUsage."""
    kind, slash, key = text.partition("/")
    if not slash or not TYPE_NAME.fullmatch(kind) or not key:
        raise BadUsage(f"'{text[:80]}' is not an agent", "write type/key")
    return AgentId(type=kind, key=key)


def topic_id(text: str) -> TopicId:
    """Parse `draft/essay-1`. Raises BadUsage."""
    kind, slash, source = text.partition("/")
    if not slash or not TYPE_NAME.fullmatch(kind) or not source:
        raise BadUsage(f"'{text[:80]}' is not a topic", "write type/source")
    return TopicId(type=kind, source=source)


def is_subscribed(agent_type: str, topic_type: str, subscriptions: Iterable[Subscription]) -> bool:
    """Whether agents of a type receive topics of a type, by any of the subscriptions."""
    return any(
        subscription.agent == agent_type and subscription.covers(topic_type) for subscription in subscriptions
    )


class Caller(msgspec.Struct, frozen=True):
    """An agent that waits further up in a chain of requests, and where its process can be reached."""

    agent: str
    inbox: str


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A message. `data` is JSON; `topic` or `recipient` is its destination, `reply` the subject for an answer."""

    id: str
    source: str
    type: str
    time: datetime
    data: msgspec.Raw
    specversion: str = "1.0"
    datacontenttype: str = "application/json"
    subject: str = ""
    sender: str = ""
    topic: str = ""
    recipient: str = ""
    reply: str = ""
    deadline: float = 0.0
    chain: tuple[Caller, ...] = ()


class ReplyMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply to a request: data, or the type and text of an error."""

    data: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    text: str = ""


class DeadLetter(msgspec.Struct, frozen=True):
    """An envelope that could not be handled, and the reason."""

    recipient: str
    reason: str
    envelope: Envelope = msgspec.field(name="parcel")
    """Stored under its original name."""

    @property
    def parcel(self) -> Envelope:
        """The original name of `envelope`."""
        return self.envelope


ENCODER = msgspec.json.Encoder()
ENVELOPES = msgspec.json.Decoder(Envelope)
REPLIES = msgspec.json.Decoder(ReplyMessage)
DEAD_LETTERS = msgspec.json.Decoder(DeadLetter)


def new_envelope(kind: str, data: object, sender: str, identity: str = "") -> Envelope:
    try:
        content = ENCODER.encode(data)
    except TypeError as error:
        raise BadUsage(
            f"a message '{kind}' cannot be sent ({error})", "send data that JSON supports"
        ) from error
    return Envelope(
        id=identity or token_hex(12),
        source=f"septet/{sender}" if sender else "septet",
        type=kind,
        time=datetime.now(UTC),
        data=msgspec.Raw(content),
        sender=sender,
    )


STREAM = "SEPTET_MAIL"  # names on the server stay as they are: older processes use them too
TOPICS, DIRECT, DEAD = "septet.mail.topic", "septet.mail.direct", "septet.mail.dead"
MAX_AGE = 7 * 86_400.0
QUEUE_MAX_AGE = MAX_AGE
"""Seconds after which the queue of an unused agent is deleted. All envelopes that it has handled have expired by then,
so a new queue of that name repeats nothing."""
DUPLICATE_WINDOW = 600.0
"""Seconds in which an envelope with a known id is not stored again."""
ACK_TIMEOUT = 2.0
SEND_TIMEOUT = 60.0
LEASE = 5.0
HEADROOM = 4096


class MessageStream:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._stream = JetStreamContext(client)

    async def create(self, replicas: int) -> None:
        config = StreamConfig(
            name=STREAM,
            subjects=[f"{TOPICS}.>", f"{DIRECT}.>", f"{DEAD}.>"],
            storage=StorageType.FILE,
            num_replicas=replicas,
            max_age=MAX_AGE,
            duplicate_window=DUPLICATE_WINDOW,
        )
        await self._stream.add_stream(config)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial

    async def send_to_topic(self, topic: TopicId, envelope: Envelope) -> None:
        await self._store(
            f"{TOPICS}.{encode_token(topic.type)}.{encode_token(topic.source)}",
            ENCODER.encode(envelope),
            envelope.id,
        )

    async def send_to_agent(self, agent: AgentId, envelope: Envelope) -> None:
        await self._store(
            f"{DIRECT}.{encode_token(agent.type)}.{encode_token(agent.key)}",
            ENCODER.encode(envelope),
            envelope.id,
        )

    async def add_dead_letter(self, dead_letter: DeadLetter, agent: AgentId) -> None:
        identity = f"{dead_letter.envelope.id}:dead:{agent}"
        await self._store(
            f"{DEAD}.{encode_token(agent.type)}.{encode_token(agent.key)}",
            ENCODER.encode(dead_letter),
            identity,
        )

    async def dead_letters(self) -> list[DeadLetter]:
        """All envelopes that could not be handled, oldest first."""
        letters: list[DeadLetter] = []
        last = 0
        while True:
            try:
                message = await self._stream.get_msg(STREAM, seq=last + 1, subject=f"{DEAD}.>", next=True)
            except nats.js.errors.NotFoundError:
                return letters
            letters.append(DEAD_LETTERS.decode(message.data or b""))
            assert message.seq is not None
            last = message.seq

    async def keys(self, agent_type: str) -> tuple[set[str], set[tuple[str, str]]]:
        """The keys of direct messages to agents of the type, and all topics with messages."""
        direct = await self._subjects(f"{DIRECT}.{encode_token(agent_type)}.*")
        topics = await self._subjects(f"{TOPICS}.>")
        parts = [subject.split(".") for subject in topics]
        return (
            {decode_token(subject.split(".")[-1]) for subject in direct},
            {(decode_token(part[-2]), decode_token(part[-1])) for part in parts},
        )

    async def _subjects(self, pattern: str) -> list[str]:
        info = await self._stream.stream_info(STREAM, subjects_filter=pattern)
        return list(info.state.subjects or {})

    async def agent_queue(self, agent: AgentId) -> JetStreamContext.PullSubscription:
        """The queue of one instance. The server delivers one envelope at a time, in order, to any process that asks.

        The next one follows when that is acknowledged; one whose handler died is delivered again first.
        """
        config = ConsumerConfig(
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=LEASE,
            max_ack_pending=1,
            max_deliver=-1,
            inactive_threshold=QUEUE_MAX_AGE,
            filter_subjects=[
                f"{TOPICS}.*.{encode_token(agent.key)}",
                f"{DIRECT}.{encode_token(agent.type)}.{encode_token(agent.key)}",
            ],
        )
        name = f"agent-{encode_token(agent.type)}-{encode_token(agent.key)}"
        return await self._stream.pull_subscribe("", durable=name, stream=STREAM, config=config)

    async def _store(self, subject: str, body: bytes, identity: str) -> None:
        """Store a message exactly once, with retries."""
        if len(body) + HEADROOM > self._client.max_payload:
            raise BadUsage(
                f"a message of {len(body):,} bytes is too big for the server", "send a blob's address"
            )
        deadline = monotonic() + SEND_TIMEOUT
        while True:
            try:
                headers = {"Nats-Msg-Id": identity}
                await self._stream.publish(subject, body, timeout=ACK_TIMEOUT, headers=headers)
                return
            except nats.errors.Error as error:
                if monotonic() > deadline or self._client.is_closed:
                    cause = f"the server does not answer ({error or type(error).__name__})"
                    raise Unreachable(cause, "try again when it is back") from error
            await anyio.sleep(0.2)


BUCKET = "septet-registry"
CHANGED = "septet.registry.changed"
SUBSCRIPTIONS: msgspec.json.Decoder[Subscription] = msgspec.json.Decoder(Subscription)


class Registry:
    def __init__(self, client: Client, entries: KeyValue) -> None:
        self._client = client
        self._entries = entries
        self._known: set[str] = set()

    async def add_type(self, agent_type: str) -> None:
        await self._entries.put(f"agent.{encode_token(agent_type)}", b"")

    async def knows(self, agent_type: str) -> bool:
        """Whether the type was ever registered: its process may be away, but will be back."""
        if agent_type in self._known:
            return True
        try:
            await self._entries.get(f"agent.{encode_token(agent_type)}")
        except nats.js.errors.KeyNotFoundError:
            return False
        self._known.add(agent_type)
        return True

    async def add(self, subscription: Subscription) -> None:
        await self._entries.put(subscription.id, ENCODER.encode(subscription))
        await self._client.publish(CHANGED)

    async def remove(self, identity: str) -> bool:
        """Remove a subscription; returns whether it existed."""
        if identity not in {subscription.id for subscription in await self.subscriptions()}:
            return False
        await self._entries.delete(identity)
        await self._client.publish(CHANGED)
        return True

    async def subscriptions(self) -> Sequence[Subscription]:
        try:
            keys = await self._entries.keys()  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        except nats.js.errors.NoKeysError:
            return []
        values = [await self._value(key) for key in sorted(keys) if not key.startswith("agent.")]
        return [SUBSCRIPTIONS.decode(value) for value in values if value]

    async def _value(self, key: str) -> bytes:
        try:
            return (await self._entries.get(key)).value or b""
        except nats.js.errors.KeyNotFoundError:  # removed meanwhile
            return b""


async def open_registry(client: Client, replicas: int) -> Registry:
    stream = JetStreamContext(client)
    try:
        return Registry(client, await stream.key_value(BUCKET))
    except nats.js.errors.NotFoundError:
        bucket = await stream.create_key_value(bucket=BUCKET, replicas=replicas)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        return Registry(client, bucket)
