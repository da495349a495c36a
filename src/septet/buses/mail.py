"""Parcels on their way: kept by the server until they are handled, on one subject per topic or recipient."""

from time import monotonic

import anyio
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, StorageType, StreamConfig
from nats.js.client import JetStreamContext

from septet.buses.addresses import AgentId, TopicId
from septet.buses.parcels import DEAD_LETTERS, ENCODER, DeadLetter, Parcel
from septet.domain.tokens import text_of, token
from septet.errors import BadUsage, Unreachable

STREAM = "SEPTET_MAIL"
TOPICS, DIRECT, DEAD = "septet.mail.topic", "septet.mail.direct", "septet.mail.dead"
KEPT = 7 * 86_400.0
UNUSED = KEPT
"""Seconds after which a mailbox that nobody opens is given up. All that it has handled is gone by then: a new one of
that name repeats nothing."""
SAME = 600.0
"""Seconds in which a parcel with an id that was seen is not stored again."""
ANSWER = 2.0
PATIENCE = 60.0
LEASE = 5.0
HEADROOM = 4096


class Mail:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._stream = JetStreamContext(client)

    async def make(self, replicas: int) -> None:
        config = StreamConfig(
            name=STREAM,
            subjects=[f"{TOPICS}.>", f"{DIRECT}.>", f"{DEAD}.>"],
            storage=StorageType.FILE,
            num_replicas=replicas,
            max_age=KEPT,
            duplicate_window=SAME,
        )
        await self._stream.add_stream(config)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial

    async def send_to_topic(self, topic: TopicId, parcel: Parcel) -> None:
        await self._store(
            f"{TOPICS}.{token(topic.type)}.{token(topic.source)}", ENCODER.encode(parcel), parcel.id
        )

    async def send_to_agent(self, agent: AgentId, parcel: Parcel) -> None:
        await self._store(
            f"{DIRECT}.{token(agent.type)}.{token(agent.key)}", ENCODER.encode(parcel), parcel.id
        )

    async def bury(self, letter: DeadLetter, agent: AgentId) -> None:
        identity = f"{letter.parcel.id}:dead:{agent}"
        await self._store(f"{DEAD}.{token(agent.type)}.{token(agent.key)}", ENCODER.encode(letter), identity)

    async def dead_letters(self) -> list[DeadLetter]:
        """All that nobody could handle, oldest first."""
        found: list[DeadLetter] = []
        last = 0
        while True:
            try:
                message = await self._stream.get_msg(STREAM, seq=last + 1, subject=f"{DEAD}.>", next=True)
            except nats.js.errors.NotFoundError:
                return found
            found.append(DEAD_LETTERS.decode(message.data or b""))
            assert message.seq is not None
            last = message.seq

    async def keys(self, agent_type: str) -> tuple[set[str], set[tuple[str, str]]]:
        """The keys that agents of the type are written to directly, and all topics that were written to."""
        direct = await self._subjects(f"{DIRECT}.{token(agent_type)}.*")
        topics = await self._subjects(f"{TOPICS}.>")
        parts = [subject.split(".") for subject in topics]
        return (
            {text_of(subject.split(".")[-1]) for subject in direct},
            {(text_of(part[-2]), text_of(part[-1])) for part in parts},
        )

    async def _subjects(self, pattern: str) -> list[str]:
        info = await self._stream.stream_info(STREAM, subjects_filter=pattern)
        return list(info.state.subjects or {})

    async def mailbox(self, agent: AgentId) -> JetStreamContext.PullSubscription:
        """The instance's own queue. The server hands out one parcel at a time, in order, to whoever asks.

        The next one follows when that one is done with; one whose handler died comes again, before all others.
        """
        config = ConsumerConfig(
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=LEASE,
            max_ack_pending=1,
            max_deliver=-1,
            inactive_threshold=UNUSED,
            filter_subjects=[
                f"{TOPICS}.*.{token(agent.key)}",
                f"{DIRECT}.{token(agent.type)}.{token(agent.key)}",
            ],
        )
        name = f"agent-{token(agent.type)}-{token(agent.key)}"
        return await self._stream.pull_subscribe("", durable=name, stream=STREAM, config=config)

    async def _store(self, subject: str, body: bytes, identity: str) -> None:
        """Kept when this returns, once, however often it had to be tried."""
        if len(body) + HEADROOM > self._client.max_payload:
            raise BadUsage(
                f"a message of {len(body):,} bytes is too big for the server", "send a blob's address"
            )
        deadline = monotonic() + PATIENCE
        while True:
            try:
                headers = {"Nats-Msg-Id": identity}
                await self._stream.publish(subject, body, timeout=ANSWER, headers=headers)
                return
            except nats.errors.Error as error:
                if monotonic() > deadline or self._client.is_closed:
                    cause = f"the server does not answer ({error or type(error).__name__})"
                    raise Unreachable(cause, "try again when it is back") from error
            await anyio.sleep(0.2)
