"""Stores of installed packages."""

import sys
from pathlib import Path

import pytest

from septet import Team
from septet.errors import BadConfig

pytestmark = pytest.mark.anyio
CODE = """
from contextlib import asynccontextmanager
from septet.stores.memory import MemoryStore

STORES = []

@asynccontextmanager
async def open_store(folder):
    STORES.append(folder)
    yield MemoryStore()
    STORES.append("closed")
"""
TALK = "way: group_chat\nmembers: [{role: writer}]\n"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A team, and a package with a store on the path, as an installed one would be."""
    package = tmp_path / "house-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: house\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[septet.stores]\nhouse = house_store:open_store\n")
    (tmp_path / "house_store.py").write_text(CODE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "script.yaml").write_text("turns: [{role: writer, say: hello}]\n")
    (tmp_path / "team.yaml").write_text(TALK)
    return str(tmp_path / "team.yaml")


async def test_a_store_of_a_package_holds_the_log_while_the_team_is_open(team: str, tmp_path: Path) -> None:
    home, script = tmp_path / "home", f"scripted:{tmp_path / 'script.yaml'}"
    async with Team.load(team, model=script, home=home, budget={"rounds": 1}, store="house") as open_team:
        result = await open_team.start("a talk")
        assert await open_team.session.log(result.chat)
    assert not (home / "septet.db").exists()
    opened, closed = sys.modules["house_store"].STORES
    assert (opened.is_relative_to(home), closed) == (True, "closed")


async def test_a_store_that_is_not_here_is_named(team: str, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="store 'shed' is not here"):
        await Team.load(team, home=tmp_path / "home", store="shed").__aenter__()
