"""Processes that are joined by the topics, and agents that note what they hear."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import msgspec
from anyio.abc import TaskGroup

from septet.cluster.connection import connect_nats
from septet.cluster.messages import AgentId
from septet.cluster.server import NatsServer
from septet.cluster.topics import HandlerContext, Handlers, TopicClient, open_topic_client


@asynccontextmanager
async def joined(server: NatsServer) -> AsyncGenerator[tuple[TopicClient, TaskGroup]]:
    """A process of its own as far as the topics can tell: its own connection, its own agents."""
    async with (
        connect_nats(server.endpoint) as client,
        open_topic_client(client) as topics,
        anyio.create_task_group() as tasks,
    ):
        yield topics, tasks
        tasks.cancel_scope.cancel()


class Heard:
    """Agents that note what they hear; `wait` returns when there is enough of it."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, object]] = []
        self._changed = anyio.Event()

    def note(self, agent: AgentId, content: object) -> None:
        self.notes.append((str(agent), content))
        self._changed.set()

    def make(self, agent: AgentId) -> Handlers:
        async def say(data: msgspec.Raw, _: HandlerContext) -> None:
            self.note(agent, msgspec.json.decode(data))

        return {"say": say}

    async def wait(self, number: int) -> list[tuple[str, object]]:
        with anyio.fail_after(120):
            while len(self.notes) < number:
                self._changed = anyio.Event()
                await self._changed.wait()
        return self.notes
