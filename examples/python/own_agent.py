"""A member from outside: a reviewer that is a function. A team file names an installed one by `model: agent:NAME`."""

from septet import Result, Team, events
from septet.domain.state import State
from septet.ports import Record


async def review(state: State, record: Record) -> events.ReviewGiven:
    short, tree = len(state.work.files) <= 3, state.work.version.tree if state.work.version else ""
    return events.ReviewGiven(len(state.work.versions), tree, "accept" if short else "revise")


async def build(goal: str, workspace: str) -> Result:
    async with Team.load("iterate", agents={"reviewer": review}) as team:
        return await team.start(goal, workspace=workspace)
