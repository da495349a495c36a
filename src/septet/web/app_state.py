"""The state that all requests share: the session, the chats that run here, their watchers, the list."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import anyio
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import ASGIApp, Receive, Scope, Send

from septet.chat.search import SearchIndex
from septet.domain.presence import HEARTBEAT
from septet.domain.state import State
from septet.errors import SeptetError, StoreFailed
from septet.protocols.http import json_response, push_file
from septet.web.channels import Channel, Channels, Frame, Frames, chats_frame, status_frame
from septet.web.chat_view import ChatCache, Summary
from septet.wiring.chat_runner import ChatRunner, ChatService, ConductorStatus
from septet.wiring.session import Session

POLL_SECONDS = 1.0
"""Seconds between two polls of the list while a page has it open."""


class ChatListFeed:
    """Sends the chats that changed to every page that has the list open."""

    def __init__(self, chats: ChatCache) -> None:
        self._chats = chats
        self._channel = Channel(State())
        self._sent: dict[str, int] = {}
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
            with suppress(StoreFailed):  # the store may be back at the next poll; the server must not end
                if changed := self._take_changes(await self._chats.summaries()):
                    self._channel.broadcast(chats_frame(changed))
            await anyio.sleep(POLL_SECONDS)

    def _take_changes(self, summaries: list[Summary]) -> list[Summary]:
        changed = [summary for summary in summaries if self._sent.get(summary.chat) != summary.seq]
        self._sent = {summary.chat: summary.seq for summary in summaries}
        return changed


Open = Callable[[ChatService], AbstractAsyncContextManager[ASGIApp]]


def mcp_endpoint() -> Open:
    from septet.protocols.mcp_server import open_http_endpoint

    return open_http_endpoint


def a2a_endpoint() -> Open:
    from septet.protocols.a2a_server import open_a2a_endpoint

    return open_a2a_endpoint


class LazyEndpoint:
    """The endpoint of a protocol, imported and opened with the first request: the page needs none of it."""

    def __init__(self, extra: str, load: Callable[[], Open], service: ChatService, tasks: TaskGroup) -> None:
        self._extra = extra
        self._load = load
        self._service = service
        self._tasks = tasks
        self._endpoint: ASGIApp | None = None
        self._opening = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self.open())(scope, receive, send)

    async def open(self) -> ASGIApp:
        async with self._opening:
            endpoint: ASGIApp = self._endpoint or await self._tasks.start(self._serve)
            self._endpoint = endpoint
            return endpoint

    async def _serve(self, task_status: TaskStatus[ASGIApp]) -> None:
        try:
            opening = self._load()
        except ImportError:
            remedy = f"pip install 'septet[{self._extra}]'"
            missing = {"error": f"the server lacks the packages for {self._extra}", "remedy": remedy}
            task_status.started(json_response(missing, 501))
            return
        async with opening(self._service) as endpoint:
            task_status.started(endpoint)
            await anyio.sleep_forever()


class AppState:
    def __init__(
        self, session: Session, model: str, channels: Channels, runner: ChatRunner, tasks: TaskGroup
    ) -> None:
        self.session = session
        self.model = model
        self.channels = channels
        self.runner = runner
        self.tasks = tasks
        """Whatever runs as long as the server does."""
        self.chats = chats = ChatCache(session.store, session.index)
        self.service = ChatService(session, runner, model, chats.state)
        self.mcp = LazyEndpoint("mcp", mcp_endpoint, self.service, tasks)
        self.a2a = LazyEndpoint("a2a", a2a_endpoint, self.service, tasks)
        self.chat_list = ChatListFeed(chats)
        self.search_index = SearchIndex(session.store, session.index)


@asynccontextmanager
async def open_app_state(session: Session, model: str) -> AsyncGenerator[AppState]:
    """Run chats in the background until the server ends; all of them can be resumed."""
    async with anyio.create_task_group() as tasks:
        channels = Channels(session.store, session.bus, tasks)
        runner = channel_runner(session, channels, tasks)
        app = AppState(session, model, channels, runner, tasks)
        tasks.start_soon(app.chat_list.follow)
        if push_file(session.home).exists():  # other agents wait for notifications
            tasks.start_soon(app.a2a.open)
        if session.deployment.remote:
            tasks.start_soon(adopt_orphans, app)
        yield app
        tasks.cancel_scope.cancel()


def channel_runner(session: Session, channels: Channels, tasks: TaskGroup) -> ChatRunner:
    """A runner whose chats have a channel, so that all watchers see their live text and the same controls."""

    @asynccontextmanager
    async def watch(state: State) -> AsyncGenerator[None]:
        async with channels.open(state) as channel:
            try:
                yield
            finally:
                channel.streams.drop_all()

    def broadcast(status: ConductorStatus) -> None:
        if channel := channels.get(status.chat):
            channel.broadcast(status_frame(status))

    return ChatRunner(session, tasks, watch, broadcast)


async def adopt_orphans(app: AppState) -> None:
    """Continue chats whose conductor died, also our own after a restart. If two servers try, one wins."""
    while True:
        with suppress(SeptetError):  # it is tried again; the server must not end
            for chat in await app.session.deployment.orphans():
                app.runner.start(await app.chats.state(chat))
        await anyio.sleep(HEARTBEAT)
