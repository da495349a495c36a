"""The agents of one runtime: factories, instances, and the shards that they belong to."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from zlib import crc32

from autogen_core import Agent, AgentId, AgentInstantiationContext, AgentRuntime
from autogen_core.logging import AgentConstructionExceptionEvent

from septet.common.text import encode_token

LOG = logging.getLogger("autogen_core")
EVENTS = logging.getLogger("autogen_core.events")
SHARDS = 16
"""Shards of a type: as many processes can serve agents of it at the same time."""

Factory = Callable[[], Agent | Awaitable[Agent]]


class Entry:
    """Where messages wait for an agent that is being made."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class AgentTable:
    def __init__(self, runtime: AgentRuntime) -> None:
        self._runtime = runtime
        self._factories: dict[str, Callable[[], Awaitable[Agent]]] = {}
        self._instance_classes: dict[str, type[Agent]] = {}
        self._registered: set[AgentId] = set()
        self._entries: dict[AgentId, Entry] = {}
        self.agents: dict[AgentId, Agent] = {}

    @property
    def types(self) -> list[str]:
        return [*self._factories, *self._instance_classes]

    def serves(self, agent_type: str) -> bool:
        return agent_type in self._factories or agent_type in self._instance_classes

    def add_factory(self, agent_type: str, factory: Factory, expected: type[Agent] | None) -> None:
        if self.serves(agent_type):
            raise ValueError(f"Agent with type {agent_type} already exists.")

        async def make() -> Agent:
            made = factory()
            agent = await made if inspect.isawaitable(made) else made
            if expected is not None and not isinstance(agent, expected):
                raise ValueError(
                    f"Factory registered using the wrong type: expected {expected.__name__}, got {type(agent).__name__}"
                )
            return agent

        self._factories[agent_type] = make

    async def add_instance(self, agent: Agent, agent_id: AgentId) -> None:
        if agent_id in self.agents:
            raise ValueError(f"Agent with id {agent_id} already exists.")
        if agent_id.type in self._factories:
            raise ValueError("Agent factories and agent instances cannot be registered to the same type.")
        if self._instance_classes.setdefault(agent_id.type, type(agent)) is not type(agent):
            raise ValueError("Agent instances must be the same object type.")
        await agent.bind_id_and_runtime(id=agent_id, runtime=self._runtime)
        self._registered.add(agent_id)
        self.agents[agent_id] = agent

    def shard(self, agent_id: AgentId) -> str:
        """Instances have shards of their own: no other process can make them."""
        if agent_id.type in self._instance_classes:
            return f"{agent_id.type}/={encode_token(agent_id.key)}"
        return f"{agent_id.type}/{crc32(agent_id.key.encode()) % SHARDS}"

    def is_elsewhere(self, agent_id: AgentId) -> bool:
        """Whether only another process can have this agent: an instance that is not registered here."""
        return agent_id.type in self._instance_classes and agent_id not in self._registered

    def drop(self, shard: str) -> None:
        """Forget the agents of a shard that another process serves now: what they remember is out of date."""
        for agent_id in [one for one in self.agents if self.shard(one) == shard]:
            if agent_id not in self._registered:
                del self.agents[agent_id]

    async def get(self, agent_id: AgentId) -> Agent:
        """The agent, which is made once, when it is first needed. Those who wait for it go on in their order."""
        agent = self.agents.get(agent_id)
        if agent is not None and agent_id not in self._entries:
            return agent
        if not self.serves(agent_id.type):
            raise LookupError(f"Agent with name {agent_id.type} not found.")
        entry = self._entries.setdefault(agent_id, Entry())
        entry.waiting += 1
        try:
            async with entry.lock:
                return self.agents.get(agent_id) or await self._make(agent_id)
        finally:
            entry.waiting -= 1
            if not entry.waiting:
                del self._entries[agent_id]

    async def _make(self, agent_id: AgentId) -> Agent:
        factory = self._factories.get(agent_id.type)
        with AgentInstantiationContext.populate_context((self._runtime, agent_id)):
            try:
                if factory is None:
                    raise RuntimeError(
                        f"there is no instance {agent_id}: instances are registered one by one. If the message was"
                        " published to the default topic, turn off skip_class_subscriptions when registering it."
                    )
                agent = await factory()
            except BaseException as error:
                EVENTS.info(AgentConstructionExceptionEvent(agent_id=agent_id, exception=error))
                LOG.error("Error constructing agent %s", agent_id, exc_info=True)
                raise
        self.agents[agent_id] = agent
        return agent

    async def close(self) -> None:
        for agent in list(self.agents.values()):
            await agent.close()
