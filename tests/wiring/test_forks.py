"""Forks: what the new workspace lacks is still to come, and what a snapshot kept is there."""

from pathlib import Path

import pytest

from septet.domain.events import (
    ChatStarted,
    Event,
    PackagesDecided,
    PackagesInstalled,
    PackagesWanted,
    VersionWritten,
)
from septet.domain.files import FileRef, tree_of
from septet.domain.packages import Installation, MissingPackages
from septet.settings.home import Home
from septet.ways.table import TEAMS
from septet.wiring.forks import fork_chat
from septet.wiring.session import Session, open_session
from septet.workspace.files import Workspace
from septet.workspace.snapshots import take_snapshot

pytestmark = pytest.mark.anyio


def home(tmp_path: Path) -> Home:
    return Home(data=tmp_path, config=tmp_path / "config", cache=tmp_path / "cache")


async def write(session: Session, chat: str, *events: Event) -> None:
    for event in events:
        await session.store.append(chat, event, after=None)


async def test_packages_are_installed_again_without_asking_again(tmp_path: Path) -> None:
    wanted = MissingPackages(distributions=("rich", "absent"))
    async with open_session(home(tmp_path)) as session:
        await write(
            session,
            "plot-abc",
            ChatStarted(goal="plot", team=TEAMS["iterate"], workspace=str(tmp_path / "old")),
            PackagesWanted(missing=wanted),
            PackagesDecided(names=("absent", "rich"), allowed=True),
            PackagesInstalled(installation=Installation(installed=("rich",), failed=("absent",))),
        )
        name = await fork_chat(session, "plot-abc")
        state = await session.state(name)
    assert name.startswith("plot-")
    assert name != "plot-abc"
    assert state.work.provisions.fresh(wanted) == MissingPackages(distributions=("rich",))
    assert not state.work.provisions.to_ask
    assert state.workspace == str(tmp_path / "work" / name)


async def test_of_two_snapshots_the_newest_is_the_workspace_and_an_earlier_fork_has_the_first(
    tmp_path: Path,
) -> None:
    old = tmp_path / "old"
    old.mkdir()
    async with open_session(home(tmp_path)) as session:
        await write(session, "sum", ChatStarted(goal="sum", team=TEAMS["autocoder"], workspace=str(old)))
        for number, text in enumerate(("1,2\n", "3,4\n"), start=1):
            (old / "data.csv").write_text(text)
            (old / f"only{number}.txt").write_text("x")
            taking, _ = await take_snapshot(Workspace(old), set(), session.blobs, number)
            await write(session, "sum", taking)
            (old / f"only{number}.txt").unlink()
        newest = tmp_path / "work" / await fork_chat(session, "sum")
        first = tmp_path / "work" / await fork_chat(session, "sum", seq=2)
    assert {path.name: path.read_text() for path in newest.iterdir()} == {
        "data.csv": "3,4\n",
        "only2.txt": "x",
    }
    assert {path.name: path.read_text() for path in first.iterdir()} == {
        "data.csv": "1,2\n",
        "only1.txt": "x",
    }


async def test_the_workspace_is_the_snapshot_with_the_version_over_it(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    (old / "data.csv").write_text("1,2\n")
    (old / "main.py").write_text("print(1)\n")
    async with open_session(home(tmp_path)) as session:
        taking, _ = await take_snapshot(Workspace(old), set(), session.blobs, 1)
        content = b"print(2)\n"
        files = (FileRef(path="main.py", sha256=await session.blobs.put(content), size=len(content)),)
        await write(
            session,
            "sum",
            ChatStarted(goal="sum", team=TEAMS["autocoder"], workspace=str(old)),
            taking,
            VersionWritten(number=1, files=files, tree=tree_of(files)),
        )
        folder = tmp_path / "work" / await fork_chat(session, "sum")
    assert (folder / "data.csv").read_text() == "1,2\n"
    assert (folder / "main.py").read_bytes() == content
    assert (old / "main.py").read_text() == "print(1)\n"
