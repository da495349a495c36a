"""A store from outside: here the log is kept in memory. Any object that is a `septet.ports.EventStore` will do."""

from septet import Result, Team
from septet.stores.memory import MemoryStore


async def build(goal: str, workspace: str) -> tuple[Result, int]:
    store = MemoryStore()
    async with Team.load("iterate", store=store) as team:
        result = await team.start(goal, workspace=workspace)
    return result, len(await store.read(result.chat))
