"""A bot in a chat room that asks the room before it builds: `post` and `next_reply` are the room's."""

from collections.abc import Awaitable, Callable

from septet import Question, Result, Team


async def serve(
    goal: str, workspace: str, post: Callable[[str], None], next_reply: Callable[[], Awaitable[str]]
) -> Result:
    async with Team.load("iterate") as team:
        run = team.start(goal, workspace=workspace, ask=True)
        async for item in run:
            if isinstance(item, Question):
                post(item.text)
                await run.answer(await next_reply())
        result = await run
        post(f"{result.status}: {result.detail}")
        return result
