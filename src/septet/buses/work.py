"""The queue of turns that members take: kept by the server, shared by all who serve a role."""

from collections.abc import AsyncGenerator
from contextlib import suppress
from secrets import token_hex
from time import monotonic

import anyio
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType, StreamConfig
from nats.js.client import JetStreamContext

from septet.buses.turns import ENCODER, STREAM, WORK, Order
from septet.errors import Unreachable

ANSWER = 2.0
BATCH = 16
LONG_POLL = 5.0
PATIENCE = 60.0
KEPT = 86_400.0
"""Seconds after which an order that nobody took is dropped; its conductor places it anew while it waits."""


async def make_work(client: Client, replicas: int = 1) -> None:
    """The stream of orders, made by whoever comes first."""
    config = StreamConfig(
        name=STREAM,
        subjects=[f"{WORK}.*"],
        retention=RetentionPolicy.WORK_QUEUE,
        storage=StorageType.FILE,
        num_replicas=replicas,
        max_age=KEPT,
    )
    with suppress(nats.js.errors.BadRequestError):  # there already, made with other settings
        await JetStreamContext(client).add_stream(config)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial


async def place(client: Client, order: Order) -> None:
    """Kept by the server when this returns, once, however often it had to be tried."""
    headers, deadline = {"Nats-Msg-Id": token_hex(12)}, monotonic() + PATIENCE
    while True:
        try:
            await JetStreamContext(client).publish(
                f"{WORK}.{order.role}", ENCODER.encode(order), timeout=ANSWER, headers=headers
            )
            return
        except nats.errors.Error as error:
            if monotonic() > deadline or client.is_closed:
                cause = (
                    f"the turn of the {order.speaker} could not be ordered ({error or type(error).__name__})"
                )
                raise Unreachable(cause, "resume when the server is back") from error
        await anyio.sleep(0.2)


async def make_queue(client: Client, role: str, lease: float) -> None:
    """The role's queue. An order goes to one member at a time, and to another when that one falls silent."""
    config = ConsumerConfig(
        durable_name=f"role-{role}",
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=lease,
        max_deliver=-1,
        filter_subject=f"{WORK}.{role}",
    )
    with suppress(nats.js.errors.BadRequestError):  # there already, with another lease
        await JetStreamContext(client).add_consumer(STREAM, config)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial


async def take_orders(client: Client, role: str, room: anyio.Semaphore) -> AsyncGenerator[Msg, None]:
    """Orders of the role as they come, until the client closes; not more at once than there is room for."""
    heard = await client.subscribe(client.new_inbox())  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
    asked = 0
    while not client.is_closed:
        if not asked:
            async with room:
                asked = max(1, min(BATCH, room.value))
            query = ENCODER.encode({"batch": asked, "expires": int(LONG_POLL * 1e9)})
            await client.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.role-{role}", query, reply=heard.subject
            )
        try:
            message = await heard.next_msg(timeout=LONG_POLL + ANSWER)
        except nats.errors.Error:  # the server was away and has forgotten that we asked
            asked = 0
            continue
        if message.headers and "Status" in message.headers:
            asked = 0
            continue
        asked -= 1
        yield message
