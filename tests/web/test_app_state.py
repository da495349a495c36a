"""The list of chats on a page, while the server that has them goes away and comes back."""

import os
import signal
from pathlib import Path

import anyio
import pytest
from polling import poll

from septet.cluster.connection import connect_nats
from septet.cluster.server import ServerConfig, serve
from septet.cluster.store import NatsStore, open_nats_store
from septet.domain.events import ChatStarted
from septet.domain.teams import RoleSpec, TeamSpec
from septet.errors import StoreFailed
from septet.web.app_state import ChatListFeed
from septet.web.channels import Frames
from septet.web.chat_view import ChatCache

pytestmark = pytest.mark.anyio
TEAM = TeamSpec(name="pair", members=(RoleSpec(name="coder", role="coder"),))


async def start(store: NatsStore, chat: str) -> None:
    await store.append(chat, ChatStarted(goal=f"a goal for {chat}", team=TEAM, workspace=""), after=0)


async def told(frames: Frames, chat: str) -> None:
    while f'"{chat}"' not in (await frames.receive()).text:
        pass


async def suspend(pid: int) -> None:
    """The signal is heard by one thread first: the others answer until they have stopped too."""
    os.kill(pid, signal.SIGSTOP)

    async def is_stopped() -> bool:
        states = [
            task.joinpath("stat").read_text().rpartition(")")[2]
            for task in Path(f"/proc/{pid}/task").iterdir()
        ]
        return all(state.split()[0] == "T" for state in states)

    await poll(is_stopped)


async def test_the_list_goes_on_after_the_server_was_away_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("septet.web.app_state.POLL_SECONDS", 0.001)
    async with (
        serve(ServerConfig(folder=tmp_path)) as server,
        connect_nats(server.endpoint) as here,
        connect_nats(server.endpoint) as there,
        anyio.create_task_group() as tasks,
    ):
        impatient, writer = await open_nats_store(here, retry_timeout=0.0), await open_nats_store(there)
        overview = ChatListFeed(ChatCache(impatient))
        tasks.start_soon(overview.follow)
        with anyio.fail_after(120):
            async with overview.listen() as frames:
                await start(writer, "before")
                await told(frames, "before")
                await suspend(server.pid)
                for _ in "12":  # what the page asked before the first is given up before the second
                    with pytest.raises(StoreFailed):
                        await impatient.chats()
                os.kill(server.pid, signal.SIGCONT)
                await start(writer, "after")
                await told(frames, "after")
        tasks.cancel_scope.cancel()
