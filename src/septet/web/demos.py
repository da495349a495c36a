"""The rehearsed chats that need no model: their names and their goals."""

import anyio

from septet.domain.values import Value
from septet.settings.team_files import known
from septet.tools.documents import read_document
from septet.wiring.models import DEMOS


class Demo(Value):
    """What a demo's script says about itself; its turns are the scripted model's business."""

    goal: str


async def demo_names() -> list[str]:
    return await anyio.to_thread.run_sync(lambda: sorted(path.stem for path in DEMOS.glob("*.yaml")))


async def demo_goal(name: str) -> str:
    known(name, await demo_names(), "demo", "a new chat")
    return (await anyio.to_thread.run_sync(read_document, DEMOS / f"{name}.yaml", Demo)).goal
