"""The log's stream on the server: how events are numbered and packed into messages, and requests to the server.

The server numbers messages. The last event of a message has the message's number times ten, and those before it
count down from there: sequences of a chat rise, and one that does not end in 0 is in the middle of a message.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import msgspec
import nats.errors
from nats.aio.msg import Msg

from septet.cluster.client import Connection, parse_headers
from septet.common.text import decode_token, encode_token
from septet.common.values import Value
from septet.domain.codec import actor, decode_as, encode, kind_of
from septet.domain.events import Event, Recorded
from septet.errors import BadConfig, LogDamaged, StoreFailed

EVENTS_PER_MESSAGE = 10
"""The most events in one message."""


def last_seq_of(message: int) -> int:
    """The sequence of a message's last event."""
    return message * EVENTS_PER_MESSAGE


def message_number(seq: int) -> int:
    """The number of the newest message that is complete with the event `seq`."""
    return seq // EVENTS_PER_MESSAGE


def is_message_end(seq: int) -> bool:
    """Whether the event is the last of its message."""
    return seq % EVENTS_PER_MESSAGE == 0


STREAM = "SEPTET_LOG"
LOG = "septet.log"
STORED = "septet.stored"
"""The subject prefix under which the server republishes stored messages."""
FENCED_BRANCH, PERSON_BRANCH = "t", "ev"
"""The branches of a chat's subjects: for fenced writers, and for messages of the person."""


def chat_subjects(chat: str) -> str:
    return f"{LOG}.{encode_token(chat)}.>"


def subject_of(chat: str, events: Sequence[Event], fenced: bool) -> str:
    """A subject by which the server can check permissions and route turns: `septet.log.CHAT.t.turn_opened.coder`.

    Of two events the last comes first, `….t.turn_opened.coder.review_given.reviewer`: it says whose turn is next.
    """
    branch = FENCED_BRANCH if fenced else PERSON_BRANCH
    names = [f"{kind_of(event)}.{encode_token(actor(event))}" for event in reversed(events)]
    return f"{LOG}.{encode_token(chat)}.{branch}.{'.'.join(names)}"


def chat_of(subject: str) -> str:
    return decode_token(subject.split(".")[2])


def is_ours(subject: str) -> bool:
    """Whether the subject has a valid chat name: a member may write under others."""
    name = subject.split(".")[2]
    try:
        return encode_token(decode_token(name)) == name
    except UnicodeDecodeError:
        return False


def is_fenced(subject: str) -> bool:
    return subject.split(".")[3] == FENCED_BRANCH


T = TypeVar("T")
API = "$JS.API"
SEQUENCE = "Nats-Sequence"
PAGE_MESSAGES = 1000
PAGE_BYTES = 4 << 20
WRONG_LAST_SEQUENCE = {10071, 10164}
NAME_IN_USE = 10058
TRANSIENT_ERRORS = {10008, 10009, 10118, 10158}
"""A cluster that elects a leader or has not decided on an earlier attempt: retry."""


class StreamFault(Value):
    code: int = 0
    err_code: int = 0
    description: str = ""


class Ack(Value):
    """The server's answer to a published message."""

    seq: int = 0
    duplicate: bool = False
    error: StreamFault | None = None


class StoredMessage(Value):
    """A message of the stream, as it was stored."""

    subject: str
    seq: int
    headers: Mapping[str, str]
    body: bytes


class StreamState(Value):
    subjects: Mapping[str, int] = {}


class Republish(Value):
    src: str = ""
    dest: str = ""


class StreamSettings(Value):
    """The settings of a stream that the log depends on."""

    num_replicas: int = 1
    subjects: tuple[str, ...] = ()
    retention: str = ""
    max_msgs: int = -1
    max_bytes: int = -1
    max_age: int = 0
    max_msgs_per_subject: int = -1
    allow_direct: bool = False
    republish: Republish | None = None


REQUIRED_SETTINGS = StreamSettings(
    subjects=(f"{LOG}.>",),
    retention="limits",
    allow_direct=True,
    republish=Republish(src=f"{LOG}.>", dest=f"{STORED}.>"),
)


class StreamInfo(Value):
    state: StreamState = StreamState()
    config: StreamSettings = StreamSettings()
    total: int = 0
    error: StreamFault | None = None


class StaleSequence(Exception):
    """The chat has newer messages than the publisher has seen."""


@dataclass(slots=True)
class Page:
    """A page of a subject's messages; `more` if there are further ones."""

    messages: list[StoredMessage]
    more: bool


class LogStream:
    def __init__(self, client: Connection) -> None:
        self._client = client
        self._requests = Requests(client)
        self.replicated = True
        """Whether a replica that is behind the leader may answer."""

    async def ensure(self, replicas: int) -> None:
        """Create the stream if it is missing and check its settings. Members may only read its settings."""
        info = await self.ask(f"{API}.STREAM.INFO.{STREAM}", {}, StreamInfo)
        if info.error is not None:
            await self._create(replicas)
            info = await self.ask(f"{API}.STREAM.INFO.{STREAM}", {}, StreamInfo)
        if info.error is not None:
            raise nats.errors.Error(info.error.description)
        check_settings(info.config)
        self.replicated = info.config.num_replicas > 1

    async def _create(self, replicas: int) -> None:
        config: dict[str, object] = {
            "name": STREAM,
            "subjects": [f"{LOG}.>"],
            "retention": "limits",
            "storage": "file",
            "num_replicas": replicas,
            "discard": "new",
            "deny_delete": True,
            "deny_purge": True,
            "allow_direct": True,
            "republish": {"src": f"{LOG}.>", "dest": f"{STORED}.>"},
        }
        answer = await self.ask(f"{API}.STREAM.CREATE.{STREAM}", config, StreamInfo)
        if answer.error is not None and answer.error.err_code != NAME_IN_USE:
            raise BadConfig(
                f"the server cannot create the log ({answer.error.description})", "check its JetStream"
            )

    async def publish(self, subject: str, body: bytes, headers: dict[str, str]) -> int:
        """Store one message and return its sequence. Raises StaleSequence, StoreFailed or an error of the client."""
        if len(body) + 1024 > self._client.max_payload:
            raise StoreFailed(
                f"an event of {len(body):,} bytes is too big for the server", "keep it as a blob"
            )
        answer = await self._requests.ask(subject, body, headers)
        ack = as_ack(answer.data)
        if ack.error is None:
            return ack.seq
        if ack.error.err_code in WRONG_LAST_SEQUENCE:
            raise StaleSequence
        raise_if_transient(ack.error)
        raise StoreFailed(f"the server did not store an event ({ack.error.description})", "check its disk")

    async def newest(self, subject: str) -> StoredMessage | None:
        """The last message of the subject, by the stream's leader."""
        return await self._get({"last_by_subj": subject})

    async def message_at(self, seq: int) -> StoredMessage | None:
        """The message with a sequence; None if there is none."""
        return await self._get({"seq": seq})

    async def oldest(self, subject: str) -> StoredMessage | None:
        return await self._get({"seq": 1, "next_by_subj": subject})

    async def _get(self, query: Mapping[str, object]) -> StoredMessage | None:
        answer = await self.ask(f"{API}.STREAM.MSG.GET.{STREAM}", query, FoundMessage)
        if answer.error is not None and answer.error.code != 404:
            raise_if_transient(answer.error)
            raise StoreFailed(
                f"the server cannot read its log ({answer.error.description})", "check its disk"
            )
        message = answer.message
        return message and StoredMessage(
            subject=message.subject,
            seq=message.seq,
            headers=parse_headers(message.hdrs),
            body=message.data,
        )

    async def page(self, subject: str, first: int) -> Page:
        """A page of messages of the subject, from a sequence on."""
        query = msgspec.json.encode(
            {"seq": first, "next_by_subj": subject, "batch": PAGE_MESSAGES, "max_bytes": PAGE_BYTES}
        )
        *messages, end = await self._requests.ask_for_many(f"{API}.DIRECT.GET.{STREAM}", query, ends_page)
        more = (end.headers or {}).get("Nats-Num-Pending", "0") != "0"
        return Page(messages=[as_stored(message) for message in messages], more=more)

    async def subjects(self) -> dict[str, int]:
        """Every subject and its number of messages."""
        counts: dict[str, int] = {}
        while True:
            query = {"subjects_filter": f"{LOG}.>", "offset": len(counts)}
            info = await self.ask(f"{API}.STREAM.INFO.{STREAM}", query, StreamInfo)
            counts |= info.state.subjects
            if not info.state.subjects or len(counts) >= info.total:
                return counts

    async def ask(self, subject: str, query: Mapping[str, object], answer: type[T]) -> T:
        reply = await self._requests.ask(subject, msgspec.json.encode(query))
        return decode_answer(reply.data, answer)


def check_settings(settings: StreamSettings) -> None:
    """Raise BadConfig for a stream with other settings: it might lose events or not republish them."""
    names = [name for name in REQUIRED_SETTINGS.__struct_fields__ if name != "num_replicas"]
    if different := [name for name in names if getattr(settings, name) != getattr(REQUIRED_SETTINGS, name)]:
        raise BadConfig(
            f"the server has a stream {STREAM} that is not a Septet log ({', '.join(different)})",
            "remove it, or use another server",
        )


class StreamMessage(Value):
    subject: str
    seq: int
    hdrs: bytes = b""
    data: bytes = b""


class FoundMessage(Value):
    message: StreamMessage | None = None
    error: StreamFault | None = None


def raise_if_transient(fault: StreamFault) -> None:
    """Raise an error of the client, so that the caller retries."""
    if fault.err_code in TRANSIENT_ERRORS:
        raise nats.errors.Error(fault.description)


def ends_page(message: Msg) -> bool:
    return SEQUENCE not in (message.headers or {})


def as_stored(message: Msg) -> StoredMessage:
    """A message that the server read from the stream or republished; its headers say which."""
    headers = message.headers or {}
    return StoredMessage(
        subject=headers["Nats-Subject"], seq=int(headers[SEQUENCE]), headers=headers, body=message.data
    )


ACK_DECODER = msgspec.json.Decoder(Ack)


def as_ack(data: bytes) -> Ack:
    try:
        return ACK_DECODER.decode(data)
    except msgspec.MsgspecError:
        return decode_answer(data, Ack)


def decode_answer(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise StoreFailed(f"the server's answer is not valid ({error})", "is it a NATS server?") from error


def pack_events(events: Sequence[Recorded]) -> bytes:
    """Encode events, one per line."""
    return b"\n".join(map(encode, events))


def unpack_events(stored: StoredMessage) -> list[Recorded]:
    """The events of a message. Raises LogDamaged if they do not match its subject, which permissions depend on."""
    lines, tokens = stored.body.split(b"\n"), stored.subject.split(".")
    chat, kinds = decode_token(tokens[2]), tokens[-2:3:-2]  # the subject names the last event first
    first = last_seq_of(stored.seq) - len(lines) + 1
    events = [decode_as(line, chat, seq, kind) for seq, line, kind in zip(count(first), lines, kinds)]
    expected = subject_of(chat, [recorded.event for recorded in events], is_fenced(stored.subject))
    if expected != stored.subject or not len(events) == len(lines) <= EVENTS_PER_MESSAGE:
        raise LogDamaged(
            f"a message of '{chat}' does not match its subject {stored.subject}",
            "are all members to be trusted? restore the log from a backup",
        )
    return events


ANSWER_TIMEOUT = 2.0
"""Seconds for one answer of the server; the caller decides about retries."""
TIMEOUT_CHECK_INTERVAL = 0.25

IsComplete = Callable[[Msg], bool]
"""Whether an answer is complete with this message."""


class PendingRequest:
    """A request without a complete answer yet."""

    def __init__(self, is_complete: IsComplete, loop: asyncio.AbstractEventLoop) -> None:
        self._is_complete = is_complete
        self._messages: list[Msg] = []
        self._deadline = loop.time() + ANSWER_TIMEOUT
        self.answer: asyncio.Future[list[Msg]] = loop.create_future()

    def receive(self, message: Msg) -> None:
        self._messages.append(message)
        if self._is_complete(message) and not self.answer.done():
            self.answer.set_result(self._messages)

    def check_timeout(self, now: float) -> None:
        if now > self._deadline and not self.answer.done():
            self.answer.set_exception(nats.errors.TimeoutError())


class Requests:
    def __init__(self, client: Connection) -> None:
        self._client = client
        self._inbox = ""
        self._numbers = count()
        self._pending: dict[str, PendingRequest] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def ask(self, subject: str, body: bytes, headers: dict[str, str] | None = None) -> Msg:
        """Send a request with a single answer. Raises an error of the client."""
        (answer,) = await self.ask_for_many(subject, body, lambda _: True, headers)
        if answer.headers and answer.headers.get("Status") == "503":
            raise nats.errors.NoRespondersError
        return answer

    async def ask_for_many(
        self, subject: str, body: bytes, is_complete: IsComplete, headers: dict[str, str] | None = None
    ) -> list[Msg]:
        """Send a request with several answers; returns them all, the completing one last."""
        if not self._inbox:
            self._inbox = self._client.new_inbox()
            await self._client.listen(f"{self._inbox}.*", self._receive)
        loop = asyncio.get_running_loop()
        name, request = str(next(self._numbers)), PendingRequest(is_complete, loop)
        if self._timer is None:
            self._timer = loop.call_later(TIMEOUT_CHECK_INTERVAL, self._check_timeouts, loop)
        self._pending[name] = request
        try:
            await self._client.publish(subject, body, reply=f"{self._inbox}.{name}", headers=headers)
            return await request.answer
        finally:
            del self._pending[name]

    def _check_timeouts(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check all requests with one timer: one for each would cost more than the requests."""
        for request in self._pending.values():
            request.check_timeout(loop.time())
        self._timer = (
            loop.call_later(TIMEOUT_CHECK_INTERVAL, self._check_timeouts, loop) if self._pending else None
        )

    def _receive(self, message: Msg) -> None:
        if request := self._pending.get(message.subject.rsplit(".", 1)[1]):
            request.receive(message)
