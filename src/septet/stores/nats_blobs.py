"""Blobs in JetStream's object store: each content is an object named by its sha256."""

from hashlib import sha256
from io import BytesIO

import anyio
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.client import JetStreamContext
from nats.js.object_store import ObjectStore

from septet.errors import LogDamaged, StoreFailed

BUCKET = "septet-blobs"
LONGEST = 120.0
"""Seconds for one content."""


class NatsBlobs:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def put(self, content: bytes) -> str:
        address = sha256(content).hexdigest()
        try:
            with anyio.fail_after(LONGEST):
                if not await self._holds(address):
                    await self._store.put(address, bytes(content))
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise StoreFailed(
                f"the server did not keep a content ({error or type(error).__name__})",
                "resume when it is back",
            ) from error
        return address

    async def get(self, address: str) -> bytes:
        if len(address) != 64 or not set(address) <= set("0123456789abcdef"):
            raise LogDamaged(f"'{address[:80]}' is not the address of a content", "restore the log")
        kept = BytesIO()
        try:
            with anyio.fail_after(LONGEST):
                await self._store.get(address, writeinto=kept)
        except nats.js.errors.NotFoundError as error:
            raise LogDamaged(f"the content {address[:12]} is missing", "restore it from a backup") from error
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise StoreFailed(
                f"the server did not hand out a content ({error or type(error).__name__})",
                "resume when it is back",
            ) from error
        if sha256(kept.getvalue()).hexdigest() != address:
            raise LogDamaged(
                f"the content {address[:12]} does not fit its address", "restore it from a backup"
            )
        return kept.getvalue()

    async def _holds(self, address: str) -> bool:
        try:
            await self._store.get_info(address)
        except nats.js.errors.NotFoundError:
            return False
        return True


async def open_nats_blobs(client: Client, replicas: int = 1) -> NatsBlobs:
    """The contents that all machines of the server share."""
    stream = JetStreamContext(client)
    try:
        store = await stream.object_store(BUCKET)
    except nats.js.errors.NotFoundError:
        store = await stream.create_object_store(BUCKET, replicas=replicas)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
    return NatsBlobs(store)
