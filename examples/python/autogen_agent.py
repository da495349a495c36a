"""A group chat of AutoGen in which one agent is a team of ours that builds, and proves that it works."""

from autogen_agentchat.base import ChatAgent, TaskResult
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat

from septet import Team
from septet.autogen import TeamAgent


async def build(goal: str, workspace: str, reader: ChatAgent) -> TaskResult:
    async with Team.load("iterate") as team:
        builder = TeamAgent("builder", team, workspace=workspace)
        chat = RoundRobinGroupChat([builder, reader], termination_condition=MaxMessageTermination(3))
        return await chat.run(task=goal)
