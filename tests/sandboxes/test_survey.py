"""What a run did to its workspace is told without much effort, whatever it did."""

import os
from pathlib import Path

import pytest

from septet.sandboxes.survey import ReadBudget, changes, open_beneath, others, survey

MEBIBYTE = 1 << 20


def test_many_large_files_that_are_all_holes_are_not_read(tmp_path: Path) -> None:
    before = survey(tmp_path)
    for number in range(60):
        with (tmp_path / f"{number}.bin").open("wb") as file:
            file.truncate(255 * 1_000_000)
    with (tmp_path / "holes.bin").open("wb") as file:
        file.truncate(8 * MEBIBYTE)
    (tmp_path / "small.txt").write_text("x")
    found = {change.path: change for change in changes(tmp_path, before, survey(tmp_path))}
    assert len(found) == 62
    assert {path for path, change in found.items() if change.sha256} == {"small.txt"}


def test_no_more_is_read_than_the_effort_allows(tmp_path: Path) -> None:
    before = survey(tmp_path)
    for number in range(4):
        (tmp_path / f"{number}.bin").write_bytes(os.urandom(MEBIBYTE))
    (tmp_path / "small.txt").write_text("x")
    after = survey(tmp_path)
    some = changes(tmp_path, before, after, ReadBudget(max_bytes=3 * MEBIBYTE))
    assert sum(bool(change.sha256) for change in some) == 3  # the small one, and two for which there is room
    none = changes(tmp_path, before, after, ReadBudget(seconds=-1))
    assert len(none) == 5
    assert not any(change.sha256 for change in none)


def test_folders_links_and_pipes_are_told_too(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    before = survey(tmp_path)
    (tmp_path / "old" / "new").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    assert others(before, survey(tmp_path)) == ("link", "pipe", "old/new")


def test_nothing_but_a_regular_file_is_opened_and_none_waits_or_leaks(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_text("x")
    os.mkfifo(tmp_path / "inner" / "pipe")
    (tmp_path / "inner" / "link").symlink_to("file")
    (tmp_path / "other").symlink_to("inner")
    before = len(list(Path("/proc/self/fd").iterdir()))
    descriptor = open_beneath(tmp_path, b"inner/file")
    assert os.read(descriptor, 9) == b"x"
    os.close(descriptor)
    for name in (b"inner", b"inner/pipe"):
        with pytest.raises(IsADirectoryError, match=f"{name.decode()} is not a regular file"):
            open_beneath(tmp_path, name)
    for name in (b"inner/link", b"other/file", b"inner/file/more", b"inner/none"):
        with pytest.raises(OSError, match=r"symbolic links|Not a directory|No such file"):
            open_beneath(tmp_path, name)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
