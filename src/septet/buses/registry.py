"""What all machines agree on: which types of agents there are, and who is subscribed to what."""

from collections.abc import Sequence

import msgspec
import nats.js.errors
from nats.aio.client import Client
from nats.js.client import JetStreamContext
from nats.js.kv import KeyValue

from septet.buses.addresses import Subscription
from septet.domain.tokens import token

BUCKET = "septet-registry"
CHANGED = "septet.registry.changed"
ENCODER = msgspec.json.Encoder()
SUBSCRIPTIONS: msgspec.json.Decoder[Subscription] = msgspec.json.Decoder(Subscription)


class Registry:
    def __init__(self, client: Client, entries: KeyValue) -> None:
        self._client = client
        self._entries = entries
        self._known: set[str] = set()

    async def add_type(self, agent_type: str) -> None:
        await self._entries.put(f"agent.{token(agent_type)}", b"")

    async def knows(self, agent_type: str) -> bool:
        """A type that was seen once is known for good: its process may be away, but will be back."""
        if agent_type in self._known:
            return True
        try:
            await self._entries.get(f"agent.{token(agent_type)}")
        except nats.js.errors.KeyNotFoundError:
            return False
        self._known.add(agent_type)
        return True

    async def add(self, subscription: Subscription) -> None:
        await self._entries.put(subscription.id, ENCODER.encode(subscription))
        await self._client.publish(CHANGED)

    async def remove(self, identity: str) -> bool:
        """Whether there was such a subscription."""
        if identity not in {one.id for one in await self.subscriptions()}:
            return False
        await self._entries.delete(identity)
        await self._client.publish(CHANGED)
        return True

    async def subscriptions(self) -> Sequence[Subscription]:
        try:
            keys = await self._entries.keys()  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        except nats.js.errors.NoKeysError:
            return []
        found = [await self._value(key) for key in sorted(keys) if not key.startswith("agent.")]
        return [SUBSCRIPTIONS.decode(value) for value in found if value]

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
        made = await stream.create_key_value(bucket=BUCKET, replicas=replicas)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        return Registry(client, made)
