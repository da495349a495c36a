"""A tool from outside, for members that call tools. An installed one has an entry point in `septet.tools`."""

from septet import Result, Team, ToolContext, tool


@tool
def count_words(context: ToolContext, path: str) -> str:
    """How many words a file has."""
    return f"{path} has {len(context.texts[path].split())} words"


async def build(goal: str, workspace: str) -> Result:
    async with Team.load("assistant") as team:
        return await team.start(goal, workspace=workspace)
