"""The demos: scripts with a team, initial files and data."""

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

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

ROWS = 9_500
CSV_HEADER = "reg_time,uid,fc_imp_chk,fc_time_chk,utmtr,mm_dma,osName,model,hardware,site_id,tag"
DEVICES = (
    ("Android", "Galaxy", "Mobile Phone", 31),
    ("Android", "Pixel", "Mobile Phone", 28),
    ("iOS", "iPhone", "Mobile Phone", 52),
    ("iOS", "iPad", "Tablet", 44),
    ("Windows", "PersonalComputer", "Desktop", 17),
)
"""System, model, hardware, and clicks per thousand impressions."""
MARKETS = (501, 803, 602, 511, 618, 753, 501)
SITES = ("news.example", "sport.example", "mail.example", "games.example", "news.example")
OTHERWISE = ("",) * 17 + ("vContent", "vContent", "vCart")
DICTIONARY = {
    "reg_time": "when the impression was registered",
    "uid": "the person, made anonymous",
    "fc_imp_chk": "how many impressions the person has had",
    "fc_time_chk": "seconds since the last one",
    "utmtr": "whether the person came by a campaign",
    "mm_dma": "the designated market area",
    "osName": "the operating system of the device",
    "site_id": "the site that showed the ad",
    "tag": "fclick is a click, v… is a view-through, empty is neither",
}


def chances() -> Iterator[int]:
    """Numbers below 32,768 that look like chance; no library's generator is promised to stay as it is."""
    state = 7
    while True:
        state = (1_103_515_245 * state + 12_345) & 0x7FFFFFFF
        yield state >> 16


def rows() -> Iterator[str]:
    chance = chances()
    for number in range(ROWS):
        system, model, hardware, clicked = DEVICES[next(chance) % len(DEVICES)]
        hour = next(chance) % 24
        likely = clicked + (15 if 18 <= hour <= 21 else 0)
        tag = "fclick" if next(chance) % 1000 < likely else OTHERWISE[next(chance) % len(OTHERWISE)]
        yield ",".join(
            [
                f"2023-05-{next(chance) % 28 + 1:02d} {hour:02d}:{next(chance) % 60:02d}:00",
                f"u{number:05d}",
                str(next(chance) % 5 + 1),
                str(next(chance) % 4000),
                str(next(chance) % 2),
                str(MARKETS[next(chance) % len(MARKETS)]),
                system,
                model,
                hardware,
                SITES[next(chance) % len(SITES)],
                tag,
            ]
        )


def write_impressions(path: Path) -> None:
    """Written whole or not at all; a log that is there already is the same one."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write("\n".join([CSV_HEADER, *rows()]) + "\n")
    Path(file.name).replace(path)


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
    from septet.demos.catalogue import DICTIONARY, write_impressions
    from septet.workspace.data_cards import describe

    path = home.data / "demo" / "impressions.csv"
    await to_thread.run_sync(write_impressions, path)
    return [await describe(str(path), {column.lower(): text for column, text in DICTIONARY.items()})]
