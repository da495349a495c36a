"""The connection of a runtime: the log of its namespace, the shards that it serves, and their closing."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats, retry_forever
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.message_log import MessageLog
from septet.cluster.messages import MAX_AGE
from septet.cluster.runtime_records import PREFIX
from septet.cluster.shards import Route, Shards
from septet.common.text import encode_token

SUBJECTS = "septet.autogen"
STREAM = "SEPTET_AUTOGEN"
WAIT = 30.0
"""Seconds for the host to be started."""


@dataclass(frozen=True)
class Link:
    client: Connection
    log: MessageLog
    shards: Shards
    root: str
    stack: AsyncExitStack

    async def close(self) -> None:
        await self.shards.close()
        await self.stack.aclose()


async def open_link(endpoint: NatsEndpoint, namespace: str, replicas: int, route: Route) -> Link:
    """Connect, and create the streams of the namespace where they are missing."""
    name = encode_token(namespace)
    root = f"{SUBJECTS}.{name}"
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connect_nats(endpoint, wait=WAIT))
        log = MessageLog(client, f"{STREAM}_{name}", f"{root}.>", MAX_AGE)
        records = MessageLog(client, f"{STREAM}_{name}_RECORDS", f"{PREFIX}.{root}.>", MAX_AGE, history=1)
        for stream in (log, records):
            await retry_forever(lambda stream=stream: stream.create(replicas))
        shards = Shards(log, records, root, route)
        await shards.open()
        return Link(client=client, log=log, shards=shards, root=root, stack=stack.pop_all())
