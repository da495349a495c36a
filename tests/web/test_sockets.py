"""What a page gets over its socket: history, then live, each event once, whatever their sequences are."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import msgspec
import pytest

from septet.domain.events import ChatStarted, PersonSpoke, Recorded
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.settings.home import find_home
from septet.team.teams import TEAMS
from septet.web.app_state import Place, open_place
from septet.web.channels import Channel, Frames
from septet.web.sockets import whole
from septet.wiring.session import open_session

pytestmark = pytest.mark.anyio
CHAT = "gaps"
STARTED = ChatStarted(goal="a goal", team=TEAMS["iterate"], workspace="")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Place]:
    async with (
        open_session(find_home({"SEPTET_HOME": str(tmp_path)})) as session,
        open_place(session, "") as opened,
    ):
        yield opened


def remark(seq: int) -> Recorded:
    return Recorded(chat=CHAT, seq=seq, at=0.0, event=PersonSpoke(text=f"remark {seq}"))


async def sequences(channel: Channel, frames: Frames, place: Place, last: int) -> list[int]:
    """Of all events that a watcher is told, in their order."""
    told: list[int] = []
    with anyio.fail_after(30):
        async for frame in whole(channel, frames, 0, place):
            content = msgspec.json.decode(frame.text, type=dict[str, object])
            events = msgspec.convert(content.get("events", []), list[dict[str, object]])
            told += [msgspec.convert(event["seq"], int) for event in events]
            if told and told[-1] == last:
                break
    return told


async def test_events_whose_sequences_have_gaps_are_told_once_each(place: Place) -> None:
    await place.session.store.append(CHAT, STARTED, after=0)
    channel = Channel(fold(await place.session.store.read(CHAT), State(chat=CHAT)))
    async with channel.listen() as frames:
        for seq in (11, 20, 30):
            channel.record(remark(seq))
        assert await sequences(channel, frames, place, last=30) == [1, 11, 20, 30]


async def test_what_was_heard_and_read_is_told_once(place: Place) -> None:
    store = place.session.store
    await store.append(CHAT, STARTED, after=0)
    channel = Channel(fold(await store.read(CHAT), State(chat=CHAT)))
    async with channel.listen() as frames:
        await store.append(CHAT, PersonSpoke(text="both"), after=None)
        channel.record(remark(2))
        channel.record(remark(7))
        assert await sequences(channel, frames, place, last=7) == [1, 2, 7]
