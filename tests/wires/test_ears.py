"""What is heard straight off the wire of a real server."""

from pathlib import Path

import anyio
import pytest
from cluster.serving import served_client
from nats.aio.msg import Msg

from septet.cluster.client import listen

pytestmark = pytest.mark.anyio


async def test_messages_are_heard_in_order_and_one_that_makes_no_sense_harms_none(tmp_path: Path) -> None:
    heard: list[int] = []
    whole = anyio.Event()

    def hear(message: Msg) -> None:
        heard.append(int(message.data))
        if len(heard) == 50:
            whole.set()

    async with served_client(tmp_path) as client:
        subscription = await listen(client, "numbers", hear)
        for number in range(50):
            await client.publish("numbers", b"no number")
            await client.publish("numbers", str(number).encode())
        with anyio.fail_after(10):
            await whole.wait()
        await subscription.unsubscribe()

    assert heard == list(range(50))


async def test_of_a_queue_each_message_goes_to_one(tmp_path: Path) -> None:
    heard: list[int] = []
    last = anyio.Event()

    def hear(message: Msg) -> None:
        heard.append(int(message.data))
        if heard[-1] == 30:
            last.set()

    async with served_client(tmp_path) as client:
        for _ in range(3):
            await listen(client, "work", hear, queue="workers")
        for number in range(31):
            await client.publish("work", str(number).encode())
        with anyio.fail_after(10):
            await last.wait()

    assert heard == list(range(31))
