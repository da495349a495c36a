"""What the Bus port promises, of every adapter."""

from collections.abc import AsyncIterator

import anyio
import pytest

from septet.ports import Bus, BusMessage

pytestmark = pytest.mark.anyio


async def take(messages: AsyncIterator[BusMessage], number: int) -> list[bytes]:
    with anyio.fail_after(120):
        return [(await anext(messages)).message for _ in range(number)]


async def test_a_subscriber_hears_what_is_published_in_order(bus: Bus) -> None:
    sent = [str(number).encode() for number in range(500)]

    async with bus.subscribe("live.clock") as messages:
        for message in sent:
            await bus.publish("live.clock", message)

        assert await take(messages, 500) == sent


async def test_every_subscriber_hears_everything(bus: Bus) -> None:
    async with bus.subscribe("live.clock") as first, bus.subscribe("live.clock") as second:
        await bus.publish("live.clock", b"tick")
        await bus.publish("live.clock", b"tock")

        assert await take(first, 2) == await take(second, 2) == [b"tick", b"tock"]


async def test_topics_do_not_mix(bus: Bus) -> None:
    async with bus.subscribe("live.clock") as messages:
        await bus.publish("live.chart", b"not for us")
        await bus.publish("live.clocks", b"nor this")
        await bus.publish("live.clock", b"for us")

        assert await take(messages, 1) == [b"for us"]


async def test_nothing_is_kept_for_those_who_come_later(bus: Bus) -> None:
    await bus.publish("live.clock", b"too early")

    async with bus.subscribe("live.clock") as messages:
        await bus.publish("live.clock", b"in time")

        assert await take(messages, 1) == [b"in time"]


async def test_a_slow_subscriber_holds_up_nobody_and_loses_nothing(bus: Bus) -> None:
    sent = [str(number).encode() for number in range(2000)]

    async with bus.subscribe("live.clock") as slow, bus.subscribe("live.clock") as quick:
        for message in sent:
            await bus.publish("live.clock", message)

        assert await take(quick, 2000) == sent
        assert await take(slow, 2000) == sent


async def test_each_publishers_messages_keep_their_order(bus: Bus) -> None:
    async def publish(name: str) -> None:
        for number in range(200):
            await bus.publish("live.clock", f"{name}:{number}".encode())

    async with bus.subscribe("live.clock") as messages:
        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(publish, name)
        heard = [message.decode().split(":") for message in await take(messages, 600)]

    for name in "abc":
        assert [int(number) for who, number in heard if who == name] == list(range(200))


async def test_a_subscriber_that_waits_is_woken(bus: Bus) -> None:
    async with bus.subscribe("live.clock") as messages, anyio.create_task_group() as group:
        group.start_soon(bus.publish, "live.clock", b"wake up")

        assert await take(messages, 1) == [b"wake up"]


async def test_one_who_has_left_disturbs_nobody(bus: Bus) -> None:
    async with bus.subscribe("live.clock") as stays:
        async with bus.subscribe("live.clock"):
            await bus.publish("live.clock", b"both")
        await bus.publish("live.clock", b"one")

        assert await take(stays, 2) == [b"both", b"one"]


async def test_a_message_may_be_empty_or_a_megabyte_less_a_little(bus: Bus) -> None:
    sent = [b"", b"\0\xff" * 400_000]

    async with bus.subscribe("live.clock") as messages:
        for message in sent:
            await bus.publish("live.clock", message)

        assert await take(messages, 2) == sent
