"""Runs in the context of a chat: what a watcher hears of their output while they run."""

import anyio
import msgspec
import pytest

from septet.agents.ask import Live, live_topic
from septet.agents.run_context import forward
from septet.runtime.bus import MemoryBus
from septet.team.acceptance import OUTCOME_MARK

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("pieces", "heard"),
    [
        ([b"one\n", b"t\xff"], ["one\n", "t\ufffd"]),
        ([f"said\n{OUTCOME_MARK}=5\n".encode()], ["said\n"]),
        ([f"{OUTCOME_MARK}!ValueError\n".encode(), b"more"], ["more"]),
    ],
)
async def test_output_is_heard_as_it_comes_but_for_the_result_of_an_example(
    pieces: list[bytes], heard: list[str]
) -> None:
    bus = MemoryBus()
    send, receive = anyio.create_memory_object_stream[bytes](len(pieces))
    found: list[str] = []
    async with bus.subscribe(live_topic("c")) as messages, anyio.create_task_group() as tasks:
        tasks.start_soon(forward, receive, bus, "c", "runner")
        async with send:
            for piece in pieces:
                await send.send(piece)
        async for message in messages:
            found.append(msgspec.json.decode(message.message, type=Live).output)
            if len(found) == len(heard):
                break
    assert found == heard
