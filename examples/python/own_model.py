"""A model from outside: any object with `answer`. Packages bring theirs by the entry point group `septet.providers`."""

from collections.abc import AsyncGenerator

from septet import Result, Team
from septet.domain.messages import Answer, Delta, Request


class Echo:
    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        yield Answer(text=f"I heard {len(request.messages)} messages.", model="echo")


def talk(goal: str, team: str) -> Result:
    return Team.run_sync(goal, team, model=Echo(), budget={"rounds": 2})
