"""A fresh home for every test, or one in which a chat has just ended."""

import shutil
from pathlib import Path

import pytest
from cli.commands import SMALL, Septet


@pytest.fixture
def septet(tmp_path: Path) -> Septet:
    return Septet(tmp_path / "home")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A person's folder in which the chat `adding` ended done, built once; beside it is a copy to begin from."""
    place = tmp_path_factory.mktemp("built") / "person"
    septet = Septet(place / "home")
    place.mkdir()
    done = septet("run", "add two numbers", "-m", SMALL, "--yes", "-q", "-n", "adding")
    assert done.returncode == 0, done.stderr
    shutil.copytree(place, place.with_name("kept"))
    return place


@pytest.fixture
def adding(built: Path) -> Septet:
    """The same as new, and in the same place: a chat knows by its whole path where its program is."""
    shutil.rmtree(built)
    shutil.copytree(built.with_name("kept"), built)
    return Septet(built / "home")
