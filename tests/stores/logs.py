"""Logs in files with something in them."""

from pathlib import Path

from septet.domain.events import PersonSpoke
from septet.stores.sqlite import open_store

HELLO = PersonSpoke(text="hello")


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def fill(path: Path, events: int = 5) -> None:
    async with open_store(path) as store:
        for number in range(events):
            await store.append("clock", PersonSpoke(text=str(number) * 500), after=number)
