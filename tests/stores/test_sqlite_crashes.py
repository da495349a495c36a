"""kill -9 of a process that writes: no acknowledged event is lost, none is half there."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from septet.domain.events import PersonSpoke
from septet.stores.sqlite import open_store

pytestmark = pytest.mark.anyio

APPENDER = Path(__file__).with_name("appender.py")
Acknowledged = dict[tuple[str, int], str]


def run_and_kill(log: Path, chats: list[str], acknowledgements: int) -> Acknowledged:
    """What a writer said was stored, until it was killed in the middle of its work."""
    command = [sys.executable, str(APPENDER), str(log), *chats]
    lines: list[bytes] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while len(lines) < acknowledgements:
            lines.append(process.stdout.readline())
        process.kill()
        lines += process.stdout.readlines()
    whole = [line.decode().split() for line in lines if line.endswith(b"\n")]
    return {(chat, int(seq)): number for chat, seq, number in whole}


async def check(log: Path, acknowledged: Acknowledged) -> None:
    async with open_store(log) as store:
        for head in await store.chats():
            recorded = await store.read(head.chat)
            assert [one.seq for one in recorded] == list(range(1, head.seq + 1))
            assert [one.event for one in recorded] == [PersonSpoke(text=str(n)) for n in range(head.seq)]
        stored = {
            (head.chat, one.seq): one.event
            for head in await store.chats()
            for one in await store.read(head.chat)
        }
    assert {place: stored.get(place) for place in acknowledged} == {
        place: PersonSpoke(text=number) for place, number in acknowledged.items()
    }


async def kill_repeatedly(log: Path, moments: list[int]) -> int:
    acknowledged: Acknowledged = {}
    for moment in moments:
        chats = [f"chat-{number}" for number in range(8)]
        acknowledged |= await anyio.to_thread.run_sync(run_and_kill, log, chats, moment)
        await check(log, acknowledged)
    return len(acknowledged)


async def test_killed_writers_lose_nothing_that_they_acknowledged(tmp_path: Path) -> None:
    assert await kill_repeatedly(tmp_path / "log.db", [1, 10, 100, 333, 1000]) >= 1444


@pytest.mark.torture
async def test_killed_writers_lose_nothing_over_a_hundred_kills(tmp_path: Path) -> None:
    assert await kill_repeatedly(tmp_path / "log.db", [7 * n % 997 + 1 for n in range(100)]) > 0
