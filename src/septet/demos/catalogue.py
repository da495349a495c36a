"""The demos: scripts with a team, initial files and data."""

import re
from pathlib import Path

from anyio import to_thread

from septet.common.demo_scripts import FOLDER, demo_names
from septet.domain.events import DataDescribed
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage
from septet.models.providers.scripted import Script, load_script
from septet.settings.home import Home
from septet.settings.team_files import check_word
from septet.ways.table import TEAMS
from septet.wiring.session import Session, with_model
from septet.workspace.files import Workspace

WITH_DATA = "ctr"


def nearest_demo(goal: str) -> str:
    """Return the demo whose goal shares most words with this one; the clock if none shares any."""

    def common_words(name: str) -> int:
        return len(significant_words(load_demo(name).goal) & significant_words(goal))

    return max(["clock", *demo_names()], key=common_words)


def significant_words(text: str) -> set[str]:
    """Words of four letters or more, without stop words."""
    return {word for word in re.findall(r"[a-z]{4,}", text.lower()) if word not in ("that", "with", "write")}


def load_demo(name: str) -> Script:
    check_word(name, demo_names(), "demo", "a new chat")
    return load_script(FOLDER / f"{name}.yaml")


def demo_team(script: Script) -> TeamSpec:
    return TEAMS[script.team]


async def start_demo(session: Session, name: str, team: TeamSpec, folder: Path | None = None) -> str:
    """Start a chat whose members answer from the script, in a folder with the script's initial files."""
    script = await to_thread.run_sync(load_demo, name)
    if folder is not None:
        await check_no_overwrite(Workspace(folder), script)
    data = await data_for(name, session.home)
    team = with_model(team, f"scripted:demo/{name}")
    chat = await session.start(script.goal, team, folder, data=data, words=name)
    await write_demo_files(Workspace(folder or session.home.workspaces / chat), script)
    return chat


async def check_no_overwrite(workspace: Workspace, script: Script) -> None:
    """Raise BadUsage if a file of the demo exists already in the person's folder."""
    await workspace.check()
    if existing := [path for path in script.files if await workspace.content(path) is not None]:
        raise BadUsage(f"{workspace.root} already contains {existing[0]}", "name an empty folder with -C")


async def write_demo_files(workspace: Workspace, script: Script) -> None:
    def write() -> None:
        for path, text in script.files.items():
            workspace.create(path, text.encode())

    await to_thread.run_sync(write)


async def data_for(name: str, home: Home) -> list[DataDescribed]:
    if name != WITH_DATA:
        return []
    from septet.demos.ad_impressions import DICTIONARY, write_impressions
    from septet.workspace.data_cards import describe

    path = home.data / "demo" / "impressions.csv"
    await to_thread.run_sync(write_impressions, path)
    return [await describe(str(path), {column.lower(): text for column, text in DICTIONARY.items()})]
