"""The stream that holds all chats: asked and written in the few ways that the store needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

import anyio
import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.domain.values import Value
from septet.errors import BadConfig, StoreFailed
from septet.stores.nats_subjects import LOG, STORED, STREAM

T = TypeVar("T")
API = "$JS.API"
PAGE = 1000
PAGE_BYTES = 4 << 20
ANSWER = 2.0
"""Seconds for one answer of the server; how often to try again is the caller's choice."""
WRONG_LAST = {10071, 10164}
NAME_IN_USE = 10058


class Fault(Value):
    code: int = 0
    err_code: int = 0
    description: str = ""


class Ack(Value):
    """What the server says to a published event."""

    seq: int = 0
    duplicate: bool = False
    error: Fault | None = None


class Stored(Value):
    """A message of the stream, as it was stored."""

    subject: str
    seq: int
    headers: Mapping[str, str]
    body: bytes


class StreamState(Value):
    subjects: Mapping[str, int] = {}


class Settings(Value):
    num_replicas: int = 1


class Info(Value):
    state: StreamState = StreamState()
    config: Settings = Settings()
    total: int = 0
    error: Fault | None = None


class Outdated(Exception):
    """Somebody has written to the chat since what the publisher has seen."""


@dataclass(slots=True)
class Page:
    """An answer in many messages; `more` says that the subject goes on."""

    messages: list[Stored] = field(default_factory=list[Stored])
    more: bool = False
    done: anyio.Event = field(default_factory=anyio.Event)

    def add(self, message: Msg) -> None:
        headers = message.headers or {}
        if "Nats-Sequence" in headers:
            subject, seq = headers["Nats-Subject"], int(headers["Nats-Sequence"])
            self.messages.append(Stored(subject=subject, seq=seq, headers=headers, body=message.data))
        else:
            self.more = headers.get("Nats-Num-Pending", "0") != "0"
            self.done.set()


class Pages:
    """One subscription for all pages that are on their way: subscribing for each would cost more than reading."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = ""
        self._numbers = count()
        self._open: dict[str, Page] = {}

    async def ask(self, subject: str, query: bytes) -> Page:
        if not self._inbox:
            self._inbox = self._client.new_inbox()
            await self._client.subscribe(f"{self._inbox}.*", cb=self._hear, pending_bytes_limit=0)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        name, page = str(next(self._numbers)), Page()
        self._open[name] = page
        try:
            await self._client.publish(subject, query, reply=f"{self._inbox}.{name}")
            with anyio.fail_after(ANSWER):
                await page.done.wait()
        finally:
            del self._open[name]
        return page

    async def _hear(self, message: Msg) -> None:
        if page := self._open.get(message.subject.rsplit(".", 1)[1]):
            page.add(message)


class LogStream:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._pages = Pages(client)
        self.replicated = True
        """Whether another copy than the leader's may answer, and may be behind."""

    async def make(self, replicas: int) -> None:
        """Make the stream where there is none; an existing one stays as it is."""
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
            "republish": {"src": f"{LOG}.>", "dest": f"{STORED}.>", "headers_only": True},
        }
        made = await self.ask(f"{API}.STREAM.CREATE.{STREAM}", config, Info)
        if made.error is not None and made.error.err_code != NAME_IN_USE:
            raise BadConfig(f"the server cannot keep a log ({made.error.description})", "check its JetStream")
        info = await self.ask(f"{API}.STREAM.INFO.{STREAM}", {}, Info)
        self.replicated = info.config.num_replicas > 1

    async def publish(self, subject: str, body: bytes, headers: dict[str, str]) -> int:
        """Store one message and return its sequence. Raises Outdated, StoreFailed or an error of the client."""
        if len(body) + 1024 > self._client.max_payload:
            raise StoreFailed(
                f"an event of {len(body):,} bytes is too big for the server", "keep it as a blob"
            )
        answer = await self._client.request(subject, body, timeout=ANSWER, headers=headers)
        ack = decoded(answer.data, Ack)
        if ack.error is None:
            return ack.seq
        if ack.error.err_code in WRONG_LAST:
            raise Outdated
        raise StoreFailed(f"the server did not store an event ({ack.error.description})", "check its disk")

    async def newest(self, subject: str) -> Stored | None:
        """The last message of the subject, as the stream's leader knows it."""
        return await self._get({"last_by_subj": subject})

    async def oldest(self, subject: str) -> Stored | None:
        return await self._get({"seq": 1, "next_by_subj": subject})

    async def _get(self, query: Mapping[str, object]) -> Stored | None:
        answer = await self.ask(f"{API}.STREAM.MSG.GET.{STREAM}", query, Found)
        if answer.error is not None and answer.error.code != 404:
            raise StoreFailed(
                f"the server cannot read its log ({answer.error.description})", "check its disk"
            )
        found = answer.message
        return found and Stored(
            subject=found.subject, seq=found.seq, headers=parsed(found.hdrs), body=found.data
        )

    async def page(self, subject: str, first: int) -> Page:
        """Messages of the subject from a sequence on, up to a page full."""
        query = msgspec.json.encode(
            {"seq": first, "next_by_subj": subject, "batch": PAGE, "max_bytes": PAGE_BYTES}
        )
        return await self._pages.ask(f"{API}.DIRECT.GET.{STREAM}", query)

    async def subjects(self) -> dict[str, int]:
        """Every subject and how many messages it has."""
        found: dict[str, int] = {}
        while True:
            query = {"subjects_filter": f"{LOG}.>", "offset": len(found)}
            info = await self.ask(f"{API}.STREAM.INFO.{STREAM}", query, Info)
            found |= info.state.subjects
            if not info.state.subjects or len(found) >= info.total:
                return found

    async def ask(self, subject: str, query: Mapping[str, object], answer: type[T]) -> T:
        reply = await self._client.request(subject, msgspec.json.encode(query), timeout=ANSWER)
        return decoded(reply.data, answer)


class Message(Value):
    subject: str
    seq: int
    hdrs: bytes = b""
    data: bytes = b""


class Found(Value):
    message: Message | None = None
    error: Fault | None = None


def decoded(data: bytes, form: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=form)
    except msgspec.MsgspecError as error:
        raise StoreFailed(f"the server's answer makes no sense ({error})", "is it a NATS server?") from error


def parsed(headers: bytes) -> dict[str, str]:
    pairs = re.findall(r"([^:\r\n]+): ?([^\r\n]*)", headers.decode())
    return dict(pairs)
