"""The NATS client: headers on their way to a real server and back, subscriptions, and waiting for news."""

import asyncio
from pathlib import Path
from urllib.parse import urlparse

import anyio
import anyio.abc
import nats.errors
import pytest
from cluster.serving import served_client
from nats.aio.msg import Msg

from septet.cluster.client import Signal, Transport

pytestmark = pytest.mark.anyio


async def test_headers_and_bodies_arrive_as_they_were_sent(tmp_path: Path) -> None:
    heard: list[Msg] = []
    whole = anyio.Event()

    def hear(message: Msg) -> None:
        heard.append(message)
        if len(heard) == len(sent):
            whole.set()

    sent = [
        ({"Septet-Id": "a-1", "Other": "ünïcode: with a colon"}, b"body"),
        ({"Septet-Id": "a-2"}, b""),
        ({"Septet-Id": "a-3"}, b"line\r\nHPUB line\r\n" * 1000),
    ]

    async with served_client(tmp_path) as client:
        await client.listen("told", hear)
        for headers, body in sent:
            await client.publish("told", body, reply="answer.here", headers=headers)
        with anyio.fail_after(120):
            await whole.wait()

    assert [(message.headers, message.data) for message in heard] == sent
    assert {message.reply for message in heard} == {"answer.here"}


@pytest.mark.parametrize("value", ["two\nlines", "two\r\nNats-Rollup: all", "two\rlines", "\r\n\r\n"])
async def test_a_header_cannot_bring_another_along(tmp_path: Path, value: str) -> None:
    heard: list[bytes] = []
    last = anyio.Event()

    def hear(message: Msg) -> None:
        heard.append(message.data)
        last.set()

    async with served_client(tmp_path) as client:
        await client.listen("told", hear)
        with pytest.raises(nats.errors.BadHeaderError):
            await client.publish("told", b"bad", headers={"Septet-Id": value})
        await client.publish("told", b"good", headers={"Septet-Id": "one"})
        with anyio.fail_after(120):
            await last.wait()

    assert heard == [b"good"]


pytestmark = pytest.mark.anyio
LONG = 60.0


async def rung(bell: Signal) -> bool:
    """Wait long, and be rung for while waiting."""
    outcomes: list[bool] = []

    async def wait() -> None:
        outcomes.append(await bell.wait(LONG))

    with anyio.fail_after(LONG / 2):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            bell.notify()
            bell.notify()
    return outcomes == [True]


async def test_who_waits_is_woken_each_time() -> None:
    bell = Signal()

    assert [await rung(bell) for _ in range(3)] == [True, True, True]
    bell.close()


async def test_nobody_rings() -> None:
    assert not await Signal().wait(0.01)


async def test_a_short_wait_after_a_long_one_is_short() -> None:
    bell = Signal()
    await rung(bell)

    with anyio.fail_after(LONG / 2):
        assert not await bell.wait(0.01)


async def test_a_long_wait_after_a_short_one_is_not_cut_short() -> None:
    bell = Signal()
    with anyio.move_on_after(0.001):
        await bell.wait(0.02)

    assert await rung(bell)
    bell.close()


async def test_a_ring_that_nobody_waited_for_is_over() -> None:
    bell = Signal()
    bell.notify()

    assert not await bell.wait(0.01)


pytestmark = pytest.mark.anyio


async def test_messages_are_heard_in_order_and_one_that_makes_no_sense_harms_none(tmp_path: Path) -> None:
    heard: list[int] = []
    whole = anyio.Event()

    def hear(message: Msg) -> None:
        heard.append(int(message.data))
        if len(heard) == 50:
            whole.set()

    async with served_client(tmp_path) as client:
        subscription = await client.listen("numbers", hear)
        for number in range(50):
            await client.publish("numbers", b"no number")
            await client.publish("numbers", str(number).encode())
        with anyio.fail_after(120):
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
            await client.listen("work", hear, queue="workers")
        for number in range(31):
            await client.publish("work", str(number).encode())
        with anyio.fail_after(120):
            await last.wait()

    assert heard == list(range(31))


async def test_one_who_gives_up_waiting_for_the_end_of_a_connection_takes_nobody_along() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        transport = Transport()
        await transport.connect(urlparse(f"nats://127.0.0.1:{port}"), buffer_size=1024, connect_timeout=10)
        first, second = (asyncio.create_task(transport.wait_closed()) for _ in "12")
        await asyncio.sleep(0)  # both wait now
        first.cancel()
        await asyncio.wait([first, second])
        transport.close()
    assert first.cancelled()
    assert not second.cancelled()
