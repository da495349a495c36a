"""What is listed of a folder, what is left out, and what is text."""

import os
import subprocess
from pathlib import Path

import pytest

from septet.workspace import listing
from septet.workspace.files import Workspace
from septet.workspace.listing import (
    LARGEST_TEXT,
    FolderEntry,
    FolderTexts,
    guess_ignored,
    ignored_paths,
    is_secret,
    list_folder,
    secret_reason,
    text_of_content,
)

TOKEN = b"token = ghp_" + b"a1B2c3D4e5" * 3 + b"f6G7h8\n"


def test_every_kind_of_entry_is_listed_parents_first(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "run.sh").write_text("x")
    (tmp_path / "b" / "run.sh").chmod(0o744)
    (tmp_path / "a.txt").write_text("abc")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".env").write_text("A=1")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "x").write_text("x")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "bad\udc80").write_text("x")
    found = list_folder(tmp_path, {"hidden"})
    assert found.entries == (
        FolderEntry(path="a.txt", kind="file", size=3),
        FolderEntry(path="b", kind="folder"),
        FolderEntry(path="b/run.sh", kind="file", size=1, executable=True),
        FolderEntry(path="link", kind="link", target="/etc/passwd"),
        FolderEntry(path="pipe", kind="odd"),
    )
    assert (found.ignored, found.secrets, found.whole) == (("hidden",), (".env",), True)
    harmless = list_folder(tmp_path, (), (".env",))
    assert harmless.entries[0] == FolderEntry(path=".env", kind="file", size=3)
    assert harmless.secrets == ()
    assert list_folder(tmp_path / "none", ()).entries == ()


def test_a_folder_with_too_many_entries_or_levels_is_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST", 3)
    for name in "abc":
        (tmp_path / name).write_text("")
    assert (len(list_folder(tmp_path, ()).entries), list_folder(tmp_path, ()).whole) == (3, True)
    (tmp_path / "d").write_text("")
    assert (len(list_folder(tmp_path, ()).entries), list_folder(tmp_path, ()).whole) == (3, False)
    monkeypatch.setattr(listing, "MOST", 99)
    monkeypatch.setattr(listing, "DEEPEST", 2)
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "x" / "y" / "kept").write_text("")
    assert list_folder(tmp_path, ()).whole
    (tmp_path / "x" / "y" / "z").mkdir()
    (tmp_path / "x" / "y" / "z" / "lost").write_text("")
    found = list_folder(tmp_path, ())
    assert not found.whole
    paths = [one.path for one in found.entries]
    assert "x/y/kept" in paths
    assert "x/y/z" in paths
    assert "x/y/z/lost" not in paths


def test_what_git_ignores_is_known_in_a_repository_within_too(tmp_path: Path) -> None:
    assert ignored_paths(tmp_path) == set()
    inner = tmp_path / "inner"
    inner.mkdir()
    for folder, rule in ((tmp_path, "*.log\nbuild/\n"), (inner, "*.tmp\n")):
        subprocess.run(["git", "init", "-q", folder], check=True)
        (folder / ".gitignore").write_text(rule)
        for name in ("a.log", "a.tmp"):
            (folder / name).write_text("x")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "x").write_text("x")
    assert ignored_paths(tmp_path) == {"a.log", "build"}
    found = list_folder(tmp_path, ignored_paths(tmp_path))
    assert set(found.ignored) == {"a.log", "build", "inner/a.tmp"}


def test_without_git_every_path_that_a_rule_could_match_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("# words\n\n*.log\n/build/\n!keep.log\n  spaced  \n")
    for path in ("a.log", "build/x", "src/b.log", "src/c.py", "spaced", "words", "keep.log"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    found = {"a.log", "keep.log", "build", "build/x", "src/b.log", "spaced"}
    assert set(guess_ignored(tmp_path)) == found
    (tmp_path / ".gitignore").unlink()
    assert guess_ignored(tmp_path) == []


def test_texts_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    for name, content in {
        "a.txt": b"a", "bin": b"\0", "key.txt": TOKEN, "long.txt": b"x" * 9, "fits.txt": b"x" * 8, "ours.py": b"old"
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    texts = FolderTexts({"ours.py": "new", "gone.py": "there"}, Workspace(tmp_path), (), 8)
    assert [*texts] == ["ours.py", "gone.py", "a.txt", "bin", "fits.txt", "key.txt", "long.txt"]
    assert len(texts) == 7
    known = {path: texts.get(path) for path in texts}
    assert known == {
        "ours.py": "new",
        "gone.py": "there",
        "a.txt": "a",
        "fits.txt": "x" * 8,
        "bin": None,
        "key.txt": None,
        "long.txt": None,
    }
    assert texts.read == {"a.txt": b"a", "fits.txt": b"x" * 8}
    (tmp_path / "later.txt").write_text("x")
    assert texts.get("later.txt") is None
    allowed = FolderTexts({}, Workspace(tmp_path), ("a.txt",), 99, ("key.*",))
    assert allowed["key.txt"] == TOKEN.decode()
    assert "a.txt" not in allowed


@pytest.mark.parametrize(
    ("path", "content", "secret"),
    [
        (".env", b"", True),
        ("a.txt", b"hello", False),
        ("a.txt", TOKEN, True),
        ("a.txt", b"\0" + TOKEN, False),
        ("a.txt", b"x" * 100 + b"\n" + TOKEN, True),
    ],
)
def test_a_secret_is_known_by_its_name_or_by_a_key_in_its_text(
    path: str, content: bytes, secret: bool
) -> None:
    assert bool(secret_reason(path, content)) is secret
    assert is_secret(path, content) is secret
    assert not is_secret(path, content, (path,))
    assert is_secret(path, content, ("other",)) is secret


def test_text_is_what_decodes_and_is_not_too_long() -> None:
    assert text_of_content("ä".encode()) == "ä"
    assert [text_of_content(one) for one in (b"\xff", b"a\0", b"x" * (LARGEST_TEXT + 1))] == [None] * 3
    assert text_of_content(b"x" * LARGEST_TEXT) == "x" * LARGEST_TEXT
    assert (text_of_content(b"abc", 3), text_of_content(b"abcd", 3)) == ("abc", None)
