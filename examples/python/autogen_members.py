"""A group chat of ours in which a client, a team and a tool of AutoGen take part: pass what you have built."""

from autogen_agentchat.base import Team as AutoGenTeam
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import FunctionTool

from septet import Result, Team, tool
from septet.autogen import as_model, as_tool


async def write(
    goal: str, client: ChatCompletionClient, critics: AutoGenTeam, lookup: FunctionTool
) -> Result:
    tool(as_tool(lookup))  # members that have tools may call it
    models = {"writer": as_model(client), "editor": as_model(critics)}
    async with Team.load("writer-editor", models=models) as team:
        return await team.start(goal)
