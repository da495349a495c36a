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
from septet.ways.table import TEAMS
from septet.web.app_state import AppState, open_app_state
from septet.web.channels import Channel, Frames
from septet.web.sockets import frames_after
from septet.wiring.session import open_session

pytestmark = pytest.mark.anyio
CHAT = "gaps"
STARTED = ChatStarted(goal="a goal", team=TEAMS["iterate"], workspace="")


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[AppState]:
    async with (
        open_session(find_home({"SEPTET_HOME": str(tmp_path)})) as session,
        open_app_state(session, "") as opened,
    ):
        yield opened


def remark(seq: int) -> Recorded:
    return Recorded(chat=CHAT, seq=seq, at=0.0, event=PersonSpoke(text=f"remark {seq}"))


async def sequences(channel: Channel, frames: Frames, app: AppState, last: int) -> list[int]:
    """Of all events that a watcher is told, in their order."""
    told: list[int] = []
    with anyio.fail_after(120):
        async for frame in frames_after(channel, frames, 0, app):
            content = msgspec.json.decode(frame.text, type=dict[str, object])
            events = msgspec.convert(content.get("events", []), list[dict[str, object]])
            told += [msgspec.convert(event["seq"], int) for event in events]
            if told and told[-1] == last:
                break
    return told


async def test_events_whose_sequences_have_gaps_are_told_once_each(app: AppState) -> None:
    await app.session.store.append(CHAT, STARTED, after=0)
    channel = Channel(fold(await app.session.store.read(CHAT), State(chat=CHAT)))
    async with channel.listen() as frames:
        for seq in (11, 20, 30):
            channel.record(remark(seq))
        assert await sequences(channel, frames, app, last=30) == [1, 11, 20, 30]


async def test_what_was_heard_and_read_is_told_once(app: AppState) -> None:
    store = app.session.store
    await store.append(CHAT, STARTED, after=0)
    channel = Channel(fold(await store.read(CHAT), State(chat=CHAT)))
    async with channel.listen() as frames:
        await store.append(CHAT, PersonSpoke(text="both"), after=None)
        channel.record(remark(2))
        channel.record(remark(7))
        assert await sequences(channel, frames, app, last=7) == [1, 2, 7]
