"""The Python API: a team that runs goals, over the command line's loop."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from septet.agents.person import Ask, present
from septet.chat.results import Result, result_of
from septet.domain.events import Recorded
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage
from septet.settings.group_chats import each_by_its_own
from septet.settings.home import find_home
from septet.settings.team_files import complete, load_team
from septet.ways.table import add_ways
from septet.ways.way import Way
from septet.wiring.session import Session, check_model, open_session, with_model


class Team:
    """A team, ready to work while its context is open.

    async with Team.load("iterate", model="scripted:demo/clock") as team:
        async for recorded in team.run("an analog clock"):
            print(recorded.seq, recorded.event)
        print(team.result.status, team.result.evidence, team.result.cost)
    """

    def __init__(self, spec: TeamSpec, ask: Ask | None, unsafe_local: bool) -> None:
        self.spec = spec
        self.ask = ask
        self.unsafe_local = unsafe_local
        self._opened = AsyncExitStack()
        self._session: Session | None = None
        self._result: Result | None = None

    @classmethod
    def load(
        cls,
        team: str = "iterate",
        *,
        model: str = "",
        ask: Ask | None = None,
        unsafe_local: bool = False,
        ways: Sequence[Way] = (),
    ) -> Self:
        """A built-in team or a team.yaml. Without `ask`, the plan is approved as it comes.

        `ways` are ways of working of your own; their teams are known by their names.
        """
        add_ways(ways)
        loaded = complete(load_team(team))
        loaded = each_by_its_own(loaded) if loaded.config and model else loaded
        check_model(loaded, model)
        if ask is None and (loaded.consult or loaded.stepwise):
            raise BadUsage(f"the team {loaded.name} wants to ask you (consult or stepwise)", "pass ask=…")
        spec = with_model(loaded, model or os.environ.get("SEPTET_MODEL", ""))
        return cls(spec if ask else replace(spec, approve="auto"), ask, unsafe_local)

    async def __aenter__(self) -> Self:
        self._session = await self._opened.enter_async_context(open_session(find_home()))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    @property
    def result(self) -> Result:
        """How the last run ended."""
        if self._result is None:
            raise BadUsage("the team has not run yet", "iterate over team.run(goal) first")
        return self._result

    async def run(
        self, goal: str, *, workspace: str | Path | None = None, name: str = ""
    ) -> AsyncGenerator[Recorded, None]:
        """Build the goal; every event comes as it is stored, in the envelope that `--json` prints."""
        if self._session is None:
            raise BadUsage("the team is not open", "use it as: async with Team.load(…) as team")
        folder = Path(os.path.abspath(workspace)) if workspace else None  # noqa: PTH100, ASYNC240  # no disk is touched
        sandbox = await self._session.sandbox(self.unsafe_local)
        chat = await self._session.start(goal, self.spec, folder, name)
        for recorded in await self._session.log(chat):
            yield recorded
        person = present(self.ask) if self.ask else None
        async with aclosing(self._session.perform(chat, sandbox, person)) as performance:
            async for recorded in performance:
                yield recorded
        self._result = result_of(await self._session.state(chat))
