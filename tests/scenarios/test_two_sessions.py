"""While a person is waited for, another terminal or the page may answer and go on: nothing is bought meanwhile."""

from pathlib import Path

import anyio
import pytest
from cli.commands import SMALL

from septet.agents.person import always_agree
from septet.chat.results import status
from septet.domain.events import Event, PersonSpoke
from septet.domain.state import State
from septet.errors import Conflict
from septet.ports import Record
from septet.settings.home import Home
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model

pytestmark = pytest.mark.anyio
PATIENCE = 120


async def test_who_waits_for_the_person_lets_others_go_on_and_finds_the_chat_taken(tmp_path: Path) -> None:
    home = Home(data=tmp_path / "home", config=tmp_path / "config", cache=tmp_path / "cache")
    asked, answered = anyio.Event(), anyio.Event()
    outcomes: list[str] = []
    told = ""

    async def slow(state: State, record: Record) -> Event:
        asked.set()
        await answered.wait()
        return PersonSpoke(text="yes")

    async def first() -> None:
        async with open_session(home) as session:
            sandbox = await session.sandbox(unsafe=True)
            await session.start("add", with_model(TEAMS["iterate"], SMALL), tmp_path / "work", "adding")
            try:
                async for _ in session.perform("adding", sandbox, slow):
                    pass
            except Conflict as conflict:
                outcomes.append(conflict.cause)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks, open_session(home) as other:
            tasks.start_soon(first)
            await asked.wait()
            async for _ in other.perform("adding", await other.sandbox(unsafe=True), always_agree):
                if not answered.is_set():
                    answered.set()
                    await anyio.wait_all_tasks_blocked()
            told = status(await other.state("adding"))

    assert told == "done; only the coder's own tests show P1; the coder knew every example of P2"
    assert len(outcomes) == 1
    assert "works on 'adding' already" in outcomes[0]
