"""What all requests share: the session, the chats that run here, who watches what, and the list of chats."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio

from septet.chat.search import SearchIndex
from septet.domain.presence import HEARTBEAT
from septet.domain.state import State
from septet.errors import SeptetError, StoreFailed
from septet.web.channels import Channel, Channels, Frame, Frames, chats_frame
from septet.web.chat_runner import ChatRunner
from septet.web.chat_view import ChatCache, Summary
from septet.wiring.session import Session

POLL_SECONDS = 1.0
"""Seconds between two looks at the list while somebody has it open."""


class ChatListFeed:
    """The list of chats, sent to every page that has it open whenever a chat has moved."""

    def __init__(self, chats: ChatCache) -> None:
        self._chats = chats
        self._channel = Channel(State())
        self._seen: dict[str, int] = {}
        self._listeners = 0
        self._wanted = anyio.Event()

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[Frames]:
        self._listeners += 1
        self._wanted.set()
        try:
            async with self._channel.listen() as frames:
                yield frames
        finally:
            self._listeners -= 1

    async def snapshot(self) -> Frame:
        return chats_frame(await self._chats.summaries())

    async def follow(self) -> None:
        while True:
            if not self._listeners:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            with suppress(StoreFailed):  # it may be back at the next look, and the page must not end with it
                if moved := self._take_changes(await self._chats.summaries()):
                    self._channel.broadcast(chats_frame(moved))
            await anyio.sleep(POLL_SECONDS)

    def _take_changes(self, summaries: list[Summary]) -> list[Summary]:
        moved = [summary for summary in summaries if self._seen.get(summary.chat) != summary.seq]
        self._seen.update({summary.chat: summary.seq for summary in moved})
        return moved


class AppState:
    def __init__(
        self, session: Session, model: str, channels: Channels, runner: ChatRunner, chats: ChatCache
    ) -> None:
        self.session = session
        self.model = model
        self.channels = channels
        self.runner = runner
        self.chats = chats
        self.chat_list = ChatListFeed(chats)
        self.search_index = SearchIndex(session.store)


@asynccontextmanager
async def open_app_state(session: Session, model: str) -> AsyncGenerator[AppState]:
    """Chats go on in the background until the server ends; they can all be resumed."""
    async with anyio.create_task_group() as tasks:
        channels = Channels(session.store, session.bus, tasks)
        runner = ChatRunner(session, channels, tasks)
        app = AppState(session, model, channels, runner, ChatCache(session.store))
        tasks.start_soon(app.chat_list.follow)
        if session.deployment.remote:
            tasks.start_soon(adopt_orphans, app)
        yield app
        tasks.cancel_scope.cancel()


async def adopt_orphans(app: AppState) -> None:
    """Go on with chats whose conductor died, also our own before a restart. Should two do so, one wins."""
    while True:
        with suppress(SeptetError):  # it is tried again, and the page must not end with it
            for chat in await app.session.deployment.orphans():
                app.runner.start(await app.chats.state(chat))
        await anyio.sleep(HEARTBEAT)
