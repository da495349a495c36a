"""A chat whose log says that it is done, and shows nothing for it."""

from pathlib import Path

import anyio
import msgspec
from cli.commands import SMALL, Septet
from msgspec.structs import replace

from septet.domain.events import ChatEnded
from septet.settings.home import Home
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model


def test_an_end_that_was_only_claimed_is_said_to_be_so_and_resume_does_the_work(tmp_path: Path) -> None:
    septet = Septet(tmp_path / "home")
    home = Home(data=septet.home, config=septet.home / "config", cache=septet.home / "cache")

    async def claim() -> None:
        async with open_session(home) as session:
            team = with_model(replace(TEAMS["iterate"], approve="auto"), SMALL)
            await session.start("add two numbers", team, tmp_path / "work", "adding")
            await session.store.append("adding", ChatEnded(reason="done", by="coder"), after=None)

    anyio.run(claim)
    (row,) = [msgspec.json.decode(line) for line in septet("list", "--json").stdout.splitlines()]
    shown = septet("show", "adding").stdout
    resumed = septet("resume", "adding", "--json")

    assert row["status"] == "claimed"
    assert "claimed by coder, not proven" in shown
    result = msgspec.json.decode(resumed.stdout.splitlines()[-1])
    assert (result["status"], result["exit_code"], resumed.returncode) == ("done", 0, 0)
    assert all(line["met"] for line in result["evidence"])
