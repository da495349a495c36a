"""A log of messages that processes append to, fenced, and read in order, each from a position of its own.

The server stores the log (a JetStream stream) and refuses an append whose fence is out of date. A reader is a
consumer in the server's memory without acknowledgements: after any fault it is made anew, right after the last
message that has arrived. So messages arrive in order, none twice and none left out.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from time import monotonic
from typing import NamedTuple, TypeVar

import msgspec
import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from septet.cluster.client import Connection, parse_headers
from septet.cluster.connection import RETRY_DELAY, retry_forever
from septet.cluster.store import EXPECTED_SEQUENCE, EXPECTED_SUBJECT, MESSAGE_ID
from septet.cluster.stream import (
    API,
    NAME_IN_USE,
    WRONG_LAST_SEQUENCE,
    FoundMessage,
    Requests,
    StaleSequence,
    StoredMessage,
    StreamFault,
    as_ack,
    as_stored,
    decode_answer,
    ends_page,
    raise_if_transient,
)
from septet.common.values import Value
from septet.errors import BadConfig, BadUsage, Unreachable

T = TypeVar("T")
SEND_TIMEOUT = 60.0
"""Seconds to retry an append while the server is away."""
DUPLICATE_WINDOW = 600.0
"""Seconds in which a message with a known id is not stored again."""
HEADROOM = 4096
NANOSECONDS = 1_000_000_000


class Fence(NamedTuple):
    """An append counts only while the last message of `subject` has this sequence."""

    subject: str
    sequence: int


class LogState(Value):
    last_seq: int = 0


class LogInfo(Value):
    state: LogState = LogState()
    error: StreamFault | None = None


class MessageLog:
    """A stream with all messages of `subjects`; `max_age` is in seconds, `history` the messages kept of a subject."""

    def __init__(
        self, client: Connection, stream: str, subjects: str, max_age: float, history: int = -1
    ) -> None:
        self.client = client
        self.stream = stream
        self._config = {
            "name": stream,
            "subjects": [subjects],
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "max_age": int(max_age * NANOSECONDS),
            "max_msgs_per_subject": history,
            "duplicate_window": int(min(DUPLICATE_WINDOW, max_age) * NANOSECONDS),
            "allow_direct": True,
        }
        self.requests = Requests(client)

    async def create(self, replicas: int = 1) -> None:
        """Create the stream unless it exists."""
        config = {**self._config, "num_replicas": replicas}
        answer = await self.ask(f"{API}.STREAM.CREATE.{self.stream}", config, LogInfo)
        if answer.error is not None and answer.error.err_code != NAME_IN_USE:
            raise_if_transient(answer.error)
            raise BadConfig(
                f"the server cannot create {self.stream} ({answer.error.description})", "check its JetStream"
            )

    async def append(
        self, subject: str, body: bytes, identity: str = "", fence: Fence | None = None
    ) -> tuple[int, bool]:
        """Store a message, with retries; returns its sequence and whether one with this id was already there.

        Raises StaleSequence where the fence does not hold, Unreachable when the server stays away.
        """
        if len(body) + HEADROOM > self.client.max_payload:
            raise BadUsage(
                f"a message of {len(body):,} bytes is too big for the server, which takes"
                f" {self.client.max_payload:,}",
                "send a blob's address",
            )
        headers = {MESSAGE_ID: identity or token_hex(12)}
        if fence is not None:
            headers |= {EXPECTED_SUBJECT: fence.subject, EXPECTED_SEQUENCE: str(fence.sequence)}
        deadline = monotonic() + SEND_TIMEOUT
        while True:
            try:
                return await self._append_once(subject, body, headers)
            except (nats.errors.Error, OSError) as error:
                if monotonic() > deadline or self.client.is_closed:
                    cause = f"the server does not answer ({error or type(error).__name__})"
                    raise Unreachable(cause, "try again when it is back") from error
            await asyncio.sleep(RETRY_DELAY)

    async def _append_once(self, subject: str, body: bytes, headers: dict[str, str]) -> tuple[int, bool]:
        if not self.client.is_connected:
            raise nats.errors.ConnectionReconnectingError
        ack = as_ack((await self.requests.ask(subject, body, headers)).data)
        if ack.error is None:
            return ack.seq, ack.duplicate
        if ack.error.err_code in WRONG_LAST_SEQUENCE:
            raise StaleSequence
        raise_if_transient(ack.error)
        raise Unreachable(f"the server did not store a message ({ack.error.description})", "check its disk")

    async def replace(self, subject: str, body: bytes, expected: int) -> int | None:
        """Append where `expected` is the subject's last message; returns the sequence, or None for another's."""
        identity = token_hex(12)
        try:
            return (await self.append(subject, body, identity, Fence(subject, expected)))[0]
        except StaleSequence:
            newest = await retry_forever(lambda: self.newest(subject))
            is_mine = newest is not None and newest.headers.get(MESSAGE_ID) == identity
            return newest.seq if newest is not None and is_mine else None  # stored, and its answer was lost

    async def write(self, subject: str, body: bytes, reply: str = "") -> None:
        """Send without waiting for an answer: for what is repeated anyway."""
        if self.client.is_connected:
            with suppress(nats.errors.Error):
                await self.client.publish(subject, body, reply)

    async def newest(self, subject: str) -> StoredMessage | None:
        """The last message of a subject, by the stream's leader."""
        return await self._get({"last_by_subj": subject})

    async def _get(self, query: Mapping[str, object]) -> StoredMessage | None:
        answer = await self.ask(f"{API}.STREAM.MSG.GET.{self.stream}", query, FoundMessage)
        if answer.error is not None and answer.error.code != 404:
            raise nats.errors.Error(answer.error.description)
        message = answer.message
        return message and StoredMessage(
            subject=message.subject, seq=message.seq, headers=parse_headers(message.hdrs), body=message.data
        )

    async def newest_of_each(self, subjects: str) -> list[StoredMessage]:
        """The last message of each of the subjects."""
        query = msgspec.json.encode({"multi_last": [subjects], "batch": 1000})
        *messages, end = await self.requests.ask_for_many(f"{API}.DIRECT.GET.{self.stream}", query, ends_page)
        if (end.headers or {}).get("Status") == "503":
            raise nats.errors.NoRespondersError
        return [as_stored(message) for message in messages]

    async def sequence_before(self, seconds: float) -> int:
        """The sequence of the last message that is older than that."""
        begin = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
        first = await self._get({"start_time": begin, "next_by_subj": ">"})
        return first.seq - 1 if first else await self.last_sequence()

    async def all(self, subjects: str) -> list[StoredMessage]:
        """All messages of the subjects, oldest first."""
        found: list[StoredMessage] = []
        while True:
            query = {"seq": found[-1].seq + 1 if found else 1, "next_by_subj": subjects}
            stored = await self._get(query)
            if stored is None:
                return found
            found.append(stored)

    async def last_sequence(self) -> int:
        info = await self.ask(f"{API}.STREAM.INFO.{self.stream}", {}, LogInfo)
        if info.error is not None:
            raise nats.errors.Error(info.error.description)
        return info.state.last_seq

    async def ask(self, subject: str, query: object, answer: type[T]) -> T:
        return decode_answer((await self.requests.ask(subject, msgspec.json.encode(query))).data, answer)


EXPIRY = 30.0
"""Seconds for which the server keeps a request for messages."""
GRACE = 2.0
"""Seconds that its answer may be late before the reader makes its consumer anew."""
UNUSED_TIMEOUT = 60.0
BATCH = 512
SMALL_BATCH, SMALL_DELAY = 64, 0.05
"""How much is read at once, and how often, while too much is at work."""

Receive = Callable[[int, Msg], None]


class ConsumerPosition(Value):
    consumer_seq: int = 0


class ConsumerInfo(Value):
    delivered: ConsumerPosition = ConsumerPosition()
    num_pending: int = 0
    error: StreamFault | None = None


class Reader:
    """Reads the messages of some subjects in order and passes each on once; `position` is the newest of them."""

    def __init__(self, log: MessageLog, receive: Receive, is_busy: Callable[[], bool]) -> None:
        self._log = log
        self._receive = receive
        self._is_busy = is_busy
        self._name, self._inbox = f"reader-{token_hex(6)}", log.client.new_inbox()
        self._subscription: Subscription | None = None
        self._generation = 0
        self._consumer = ""
        self._subjects: Sequence[str] = ()
        self._received = 0
        self._requested = 0
        self._answer_due = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self.position = 0
        self.steps = False
        """Whether messages are only read when `step` is called."""

    async def open(self) -> None:
        self._subscription = await self._log.client.listen(f"{self._inbox}.*", self._on_message)
        self._log.client.on_reconnect.append(self._restart)

    def read(self, after: int, subjects: Sequence[str] | None = None) -> None:
        """From now on pass on the messages after a sequence, of these subjects or the same as before."""
        self._subjects = self._subjects if subjects is None else subjects
        self.position = after
        self._restart()

    async def settle(self) -> None:
        """Wait until the server knows what is read."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def _restart(self, delay: float = 0.0) -> None:
        """Make the consumer anew, right after the last message that has arrived."""
        for task in self._tasks:
            task.cancel()
        self._generation += 1  # what the consumer before still sends is ignored
        self._consumer = f"{self._name}-{self._generation}"
        self._received = self._requested = 0
        self._start(self._create(self._generation, delay))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _create(self, generation: int, delay: float) -> None:
        await asyncio.sleep(delay)
        await retry_forever(self._create_once)
        await self._delete(generation - 1)
        self._refill()

    async def _create_once(self) -> None:
        config = {
            "name": self._consumer,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self.position + 1,
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": int(UNUSED_TIMEOUT * NANOSECONDS),
            "filter_subjects": list(self._subjects),
        }
        query = {"stream_name": self._log.stream, "config": config}
        subject = f"{API}.CONSUMER.CREATE.{self._log.stream}.{self._consumer}"
        info = await self._log.ask(subject, query, ConsumerInfo)
        if info.error is not None:
            raise nats.errors.Error(info.error.description)

    async def _delete(self, generation: int) -> None:
        await self._log.write(f"{API}.CONSUMER.DELETE.{self._log.stream}.{self._name}-{generation}", b"")

    @property
    def is_waiting(self) -> bool:
        """Whether messages were requested that have not come yet."""
        return self._requested > 0 or bool(self._tasks)

    def step(self) -> None:
        """Read one message more."""
        self._request(1)

    def _refill(self) -> None:
        if self.steps or self._requested > BATCH // 2:
            return
        if not self._is_busy():
            self._request(BATCH - self._requested)
        elif self._requested == 0:  # slowly: what those at work wait for may be among what comes
            asyncio.get_running_loop().call_later(SMALL_DELAY, self._request_small, self._generation)

    def _request_small(self, generation: int) -> None:
        if generation == self._generation and self._requested == 0:
            self._request(SMALL_BATCH)

    def _request(self, number: int) -> None:
        self._requested += number
        self._answer_due = monotonic() + EXPIRY + GRACE
        query = b'{"batch":%d,"expires":%d}' % (number, EXPIRY * NANOSECONDS)
        subject = f"{API}.CONSUMER.MSG.NEXT.{self._log.stream}.{self._consumer}"
        self._start(self._log.write(subject, query, f"{self._inbox}.{self._generation}"))

    def _on_message(self, message: Msg) -> None:
        self._answer_due = monotonic() + EXPIRY + GRACE
        if not message.reply.startswith("$JS.ACK."):
            if message.subject.rsplit(".", 1)[1] == str(self._generation):
                self._on_status(message.headers or {})
            return
        consumer, seq, number = origin(message.reply)
        if consumer != self._consumer:
            return
        if number != self._received + 1:  # something was lost on the way
            self._restart()
            return
        self._received = number
        self._requested -= 1
        self.position = seq
        try:
            self._receive(seq, message)
        finally:  # a message that is not valid must not end the reading
            self._refill()

    def _on_status(self, headers: Mapping[str, str]) -> None:
        if headers.get("Status") == "408":
            self._requested -= int(headers.get("Nats-Pending-Messages", self._requested))
            self._refill()
        else:
            self._restart(RETRY_DELAY)

    def check(self) -> None:
        """Make the consumer anew if its answer is overdue."""
        if self._requested and monotonic() > self._answer_due:
            self._restart()

    async def is_at_end(self) -> bool:
        """Whether all that had been stored at the time has arrived; if so, the position becomes the log's end."""
        await self.settle()
        generation, last = self._generation, await self._log.last_sequence()
        subject = f"{API}.CONSUMER.INFO.{self._log.stream}.{self._consumer}"
        info = await self._log.ask(subject, {}, ConsumerInfo)
        if info.error is not None or generation != self._generation:
            return False
        if info.num_pending or info.delivered.consumer_seq != self._received:
            return False
        self.position = max(self.position, last)
        return True

    async def close(self) -> None:
        if self._subscription is None:
            return
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._log.client.on_reconnect.remove(self._restart)
        with suppress(nats.errors.Error):
            await self._subscription.unsubscribe()
        await self._delete(self._generation)


def origin(reply: str) -> tuple[str, int, int]:
    """The consumer of a message and its sequences in stream and consumer, by its reply subject (of either format)."""
    tokens = reply.split(".")
    first = 3 if len(tokens) == 9 else 5
    return tokens[first], int(tokens[first + 2]), int(tokens[first + 3])
