"""A chat whose log or manager says that it is done: what shows it decides."""

from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest
from cli.commands import SMALL, Septet
from msgspec.structs import replace
from scenarios.folders.chats import ACCEPT, code, plan, play, script

from septet.chat.results import result_of
from septet.domain.events import ChatEnded, Recorded
from septet.domain.reduce import fold
from septet.settings.home import Home
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model

OWN_TEST = "from add import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"


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
    listed, shown = septet("list").stdout, septet("show", "adding").stdout
    told = septet("export", "adding", "--format", "txt").stdout
    resumed = septet("resume", "adding", "--json")

    assert row["status"] == "claimed"
    assert "claimed by coder, not proven" in shown
    assert "claimed by coder, not proven" in listed
    assert "coder:\nsays that it has ended: done\n" in told, "a transcript tells who said it"
    result = msgspec.json.decode(resumed.stdout.splitlines()[-1])
    assert (result["status"], result["exit_code"], resumed.returncode) == ("done", 0, 0)
    assert all(line["met"] for line in result["evidence"])


ADD = "import sys\n\n\ndef add(a, b):\n    return {}\n\n\nprint(add(*map(int, sys.argv[1:] or (1, 1))))\n"
CHECK = "check: command python main.py 2 3 => 5"
ENDS: dict[str, tuple[str, str, str]] = {
    "the check passes": (CHECK, "a + b", "done"),
    "the check fails": (CHECK, "a", "no_progress"),
    "no check": ("", "a + b", "claimed"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", ENDS)
async def test_a_managers_terminate_counts_when_its_checks_pass(tmp_path: Path, name: str) -> None:
    check, result, reason = ENDS[name]
    (tmp_path / "project").mkdir()
    told = {"role": "manager", "say": f"Write main.py, which adds two numbers.\n{check}\nnext: coder"}
    ends = {"role": "manager", "say": "terminate: it adds"}
    written = code({"main.py": ADD.format(result)})
    model = script(tmp_path, told, code({}, "1. Write it."), *[written] * 8, *[ends] * 8)
    played = await play(tmp_path, model, "pair", rounds=8, goal="add two numbers")
    state = fold([Recorded(chat="c", seq=seq, at=0.0, event=one) for seq, one in enumerate(played.events, 1)])
    assert (played.ended.reason, result_of(state).exit_code) == (reason, 0 if reason == "done" else 3)


@pytest.mark.anyio
async def test_a_strict_team_refuses_a_plan_that_only_tests_of_the_coders_would_show(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    files = {"add.py": "def add(a, b):\n    return a + b\n", "test_add.py": OWN_TEST}
    plans = [plan("python add.py", one) for one in ("tests test_add.py", "example add.add(2, 3) => 5")]
    model = script(tmp_path, *plans, *[code(files)] * 2, *[ACCEPT] * 2)
    strict = partial(replace, strict=True)
    played = await play(tmp_path, model, "iterate", rounds=1, goal="add.add adds", change=strict)
    refused = "P1: tests that the coder writes prove nothing; give examples or commands"
    assert (played.ended.reason, played.refusals) == ("done", [refused])
