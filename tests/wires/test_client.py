"""Headers on their way to a real server and back."""

from pathlib import Path

import anyio
import nats.errors
import pytest
from cluster.serving import served_client
from nats.aio.msg import Msg

from septet.cluster.client import listen

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
        await listen(client, "told", hear)
        for headers, body in sent:
            await client.publish("told", body, reply="answer.here", headers=headers)
        with anyio.fail_after(10):
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
        await listen(client, "told", hear)
        with pytest.raises(nats.errors.BadHeaderError):
            await client.publish("told", b"bad", headers={"Septet-Id": value})
        await client.publish("told", b"good", headers={"Septet-Id": "one"})
        with anyio.fail_after(10):
            await last.wait()

    assert heard == [b"good"]
