"""Where Septet keeps its own files, and which folders it may write into without a question."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from septet.errors import BadConfig, BadUsage
from septet.settings.home import Home, find_home, set_trusted, trusted_folders, write_private


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return find_home({"SEPTET_HOME": str(tmp_path / "home")})


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_everything_is_below_the_folder_that_was_named(tmp_path: Path, home: Home) -> None:
    root = tmp_path / "home"
    assert home == Home(data=root, config=root / "config", cache=root / "cache")
    known = {
        "septet.db": home.database,
        "blobs": home.blobs,
        "examples.db": home.examples,
        "facts": home.facts,
        "conducted": home.remote_chats,
        "environments": home.environments,
        "locks": home.locks,
        "keepsakes": home.artefacts,
        "scratch": home.scratches,
        "work": home.workspaces,
        "config/trusted.json": home.trusted,
        "cache/index.db": home.index,
    }
    assert known == {name: root / name for name in known}


@pytest.mark.skipif(sys.platform == "darwin", reason="there the folders are those of the Library")
def test_else_it_is_in_the_usual_folders_and_a_relative_path_does_not_count(tmp_path: Path) -> None:
    assert find_home({"XDG_DATA_HOME": str(tmp_path), "XDG_CACHE_HOME": "somewhere"}) == Home(
        data=tmp_path / "septet",
        config=Path.home() / ".config" / "septet",
        cache=Path.home() / ".cache" / "septet",
    )


def test_on_a_mac_it_is_in_the_folders_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    library = Path.home() / "Library"
    data = library / "Application Support" / "septet"
    assert find_home({}) == Home(data=data, config=data, cache=library / "Caches" / "septet")


def test_a_folder_is_trusted_until_it_no_longer_is(tmp_path: Path, home: Home) -> None:
    assert trusted_folders(home) == []
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    for folder in (one, other, one):
        set_trusted(home, folder, trusted=True)
    assert trusted_folders(home) == [str(other), str(one)]
    one.rmdir()
    set_trusted(home, one, trusted=False)
    assert trusted_folders(home) == [str(other)], "a folder that is gone can be taken back too"


def test_a_folder_that_is_none_cannot_be_trusted_nor_one_that_is_not_be_taken_back(
    tmp_path: Path, home: Home
) -> None:
    with pytest.raises(BadUsage, match="is not a folder"):
        set_trusted(home, tmp_path / "none", trusted=True)
    with pytest.raises(BadUsage, match="is not a trusted folder"):
        set_trusted(home, tmp_path, trusted=False)
    assert not home.trusted.exists()


@pytest.mark.parametrize("content", ["{", '{"a": 1}'])
def test_a_list_that_cannot_be_read_is_said_to_be_so(home: Home, content: str) -> None:
    write_private(home.trusted, content.encode())
    with pytest.raises(BadConfig, match="cannot be read"):
        trusted_folders(home)


@pytest.mark.usefixtures("open_umask")
def test_a_settings_file_is_replaced_whole_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    for content in (b"one", b"two"):
        write_private(path, content)
        assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [one.name for one in path.parent.iterdir()] == ["settings.json"]
    with pytest.raises(BadConfig, match="cannot be written"):
        write_private(path / "below", b"x")
