"""What a runtime sends: messages to topics, requests and their replies, cancellations."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from time import time

from autogen_core import AgentId, CancellationToken, TopicId
from autogen_core.exceptions import UndeliverableException

from septet.cluster.connection import retry_forever
from septet.cluster.message_log import Fence
from septet.cluster.shards import RUNTIME, SERVERS
from septet.cluster.stream import StaleSequence
from septet.common.text import encode_token
from septet.errors import BadUsage, Unreachable
from septet.protocols.autogen.envelopes import (
    CANCEL,
    DIRECT,
    ENCODER,
    REPLY,
    Envelope,
    Kind,
    seal,
    topic_subject,
)
from septet.protocols.autogen.handling import HANDLING, Tokens
from septet.protocols.autogen.link import Link
from septet.protocols.autogen.serialization import Payload

NOTHING = Payload(type="NoneType", content_type="application/json", data=b"null")


@dataclass(frozen=True)
class Draft:
    """A message to be sent, and what its sender says about it."""

    payload: Payload
    sender: AgentId | None = None
    message_id: str | None = None
    token: CancellationToken | None = None
    trace: Mapping[str, str] = field(default_factory=dict[str, str])


class Outgoing:
    def __init__(self, runtime: object) -> None:
        self._runtime = runtime
        self._replies: dict[str, asyncio.Future[Envelope]] = {}
        self._known: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._link: Link | None = None
        self.tokens = Tokens(self._announce_cancel)
        self.errors: dict[str, BaseException] = {}
        """What handlers of this process raised, by request: here the sender gets the exception itself."""
        self.sending = 0
        """How many messages are on their way to the log."""

    @property
    def is_waiting(self) -> bool:
        return bool(self._replies or self.sending)

    async def publish(self, link: Link, topic: TopicId, draft: Draft) -> None:
        identity, fence = self._identity(f"t{topic}", draft)
        token = self.tokens.name(draft.token, identity) if draft.token else ""
        envelope = self._seal(link, "publish", identity, draft, topic=str(topic), token=token)
        await self.append(link, topic_subject(link.root, topic), envelope, identity, fence)

    def _seal(self, link: Link, kind: Kind, identity: str, draft: Draft, **fields: object) -> Envelope:
        sender, given = str(draft.sender or ""), draft.message_id or ""
        return seal(
            kind,
            identity,
            draft.payload,
            runtime=link.shards.id,
            sender=sender,
            messageid=given,
            **draft.trace,
            **fields,
        )

    async def request(
        self, link: Link, kind: Kind, recipient: AgentId, draft: Draft, timeout: float | None
    ) -> Envelope:
        """Send a request and wait for the reply. Whoever stops waiting cancels it, unless others have the token too."""
        identity, fence = self._identity(f"d{recipient}", draft)
        token = draft.token or CancellationToken()
        envelope = self._seal(
            link,
            kind,
            identity,
            draft,
            recipient=str(recipient),
            token=self.tokens.name(token, identity),
            expires=time() + timeout if timeout else 0.0,
        )
        reply = self._replies[identity] = asyncio.get_running_loop().create_future()
        token.link_future(reply)
        subject = f"{link.root}.{DIRECT}.{encode_token(recipient.type)}"
        try:
            # Another process may repeat a request after a crash, and needs a reply of its own.
            sending = self._spawn(self.append(link, subject, envelope, f"{identity}@{link.shards.id}", fence))
            sending.add_done_callback(partial(fail, reply))
            async with asyncio.timeout(timeout):
                return await reply
        except (TimeoutError, asyncio.CancelledError) as error:
            if draft.token is None:
                token.cancel()
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"{recipient} did not answer in {timeout:g} s") from error
            raise
        finally:
            del self._replies[identity]

    async def knows(self, link: Link, agent_type: str) -> bool:
        """Whether some process has served the type: one that is away will be back."""
        if agent_type not in self._known:
            subject = f"{link.root}.{SERVERS}.{encode_token(agent_type)}.*"
            if await retry_forever(lambda: link.log.newest(subject)) is None:
                return False
            self._known.add(agent_type)
        return True

    async def check_known(self, link: Link, agent_type: str) -> None:
        """Raise UndeliverableException if nobody has ever served the type."""
        if not await self.knows(link, agent_type):
            raise UndeliverableException(f"Recipient not found: there is no agent of type '{agent_type}'")

    def _identity(self, destination: str, draft: Draft) -> tuple[str, Fence | None]:
        """An id by which the server recognises the message if it is sent again, and the fence of its sender."""
        handling = HANDLING.get()
        if handling is not None and handling.runtime is self._runtime and handling.agent == draft.sender:
            return handling.next_identity(destination), handling.fence
        return f"{draft.message_id}>{destination}" if draft.message_id else token_hex(15), None

    async def append(
        self, link: Link, subject: str, envelope: Envelope, identity: str, fence: Fence | None
    ) -> None:
        self.sending += 1
        try:
            await link.log.append(subject, ENCODER.encode(envelope), identity, fence)
        except StaleSequence as error:
            raise UndeliverableException(
                f"{envelope.sender or 'the sender'} is served by another process now"
            ) from error
        except (BadUsage, Unreachable) as error:
            raise UndeliverableException(str(error)) from error
        finally:
            self.sending -= 1

    def on_reply(self, envelope: Envelope) -> None:
        reply = self._replies.get(envelope.request)
        if reply is not None and not reply.done():
            reply.set_result(envelope)

    async def reply(self, link: Link, to: Envelope, kind: Kind, payload: Payload, fence: Fence) -> None:
        if not RUNTIME.fullmatch(to.runtime):
            return  # of no runtime
        identity = f"{to.id}@{to.runtime}:reply"
        envelope = seal(kind, identity, payload, runtime=link.shards.id, request=to.id)
        await self.append(link, f"{link.root}.{REPLY}.{to.runtime}", envelope, identity, fence)

    def use(self, link: Link) -> None:
        """Announce over this link what is cancelled."""
        self._link, self._loop = link, asyncio.get_running_loop()

    def _announce_cancel(self, name: str) -> None:
        """Tell the other processes; tokens may be cancelled in any thread."""
        if self._link is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._start_cancel, self._link, name)

    def _start_cancel(self, link: Link, name: str) -> None:
        if not link.client.is_closed:
            self._spawn(self._cancel(link, name))

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _cancel(self, link: Link, name: str) -> None:
        envelope = seal("cancel", f"{name}:cancel", NOTHING, runtime=link.shards.id, token=name)
        try:
            await self.append(link, f"{link.root}.{CANCEL}", envelope, f"{name}:cancel", None)
        except UndeliverableException:
            return  # the server is away for good; who works on it ends by itself


def fail(reply: asyncio.Future[Envelope], sending: asyncio.Task[None]) -> None:
    """A request that was not stored gets no reply, but the reason."""
    error = None if sending.cancelled() else sending.exception()
    if error is not None and not reply.done():
        reply.set_exception(error)
