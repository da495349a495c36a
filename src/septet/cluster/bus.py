"""The bus over NATS: at most once, in order per publisher, nothing stored.

The subject of a message names its publisher, so that the server can enforce who may publish under which name.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

import nats.errors
from nats.aio.client import Client
from nats.aio.subscription import Subscription

from septet.common.text import decode_token, encode_token
from septet.errors import BadUsage, Unreachable
from septet.ports import BusMessage

PREFIX = "septet.bus"


class NatsBus:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def publish(self, topic: str, message: bytes, by: str = "") -> None:
        """Publish a message. While the server is away, messages wait in a limited buffer, or are dropped."""
        try:
            await self._client.publish(f"{PREFIX}.{encode_token(topic)}.{encode_token(by)}", message)
        except nats.errors.OutboundBufferLimitError:
            return
        except nats.errors.MaxPayloadError as error:
            raise BadUsage(
                f"a message of {len(message):,} bytes is too big for the bus", "keep it as a blob"
            ) from error
        except nats.errors.Error as error:
            raise Unreachable(f"the bus does not answer ({error})", "is the server running?") from error

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncGenerator[AsyncIterator[BusMessage]]:
        try:
            subject = f"{PREFIX}.{encode_token(topic)}.*"
            subscription = await self._client.subscribe(subject, pending_msgs_limit=0, pending_bytes_limit=0)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
            await self._client.flush()  # from here on no message is missed
        except nats.errors.Error as error:
            raise Unreachable(f"the bus does not answer ({error})", "is the server running?") from error
        try:
            yield bus_messages(subscription)
        finally:
            if not self._client.is_closed:
                await subscription.unsubscribe()


async def bus_messages(subscription: Subscription) -> AsyncIterator[BusMessage]:
    async for message in subscription.messages:
        with suppress(UnicodeDecodeError):  # not a valid name
            yield BusMessage(decode_token(message.subject.rpartition(".")[2]), message.data)
