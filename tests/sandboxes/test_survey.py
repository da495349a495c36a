"""What a run did to its workspace is told without much effort, whatever it did."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from septet.domain.files import FileChange
from septet.sandboxes.survey import (
    FileStamp,
    ReadBudget,
    changes,
    open_beneath,
    others,
    quick_survey,
    survey,
)

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


def test_everything_is_counted_and_only_files_are_stamped(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_bytes(b"x" * 5000)
    (tmp_path / "link").symlink_to("folder")
    found = survey(tmp_path)
    places = [tmp_path / name for name in ("folder", "folder/a.txt", "link")]
    assert found.entries == 3
    assert found.space == sum(place.lstat().st_blocks * 512 for place in places)
    assert found.others == {b"folder", b"link"}
    state = (tmp_path / "folder" / "a.txt").stat()
    assert found.files == {
        b"folder/a.txt": FileStamp(5000, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
    }
    assert survey(tmp_path / "none").entries == 0


def test_a_small_workspace_is_surveyed_at_once_and_a_larger_one_not(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("")
    assert quick_survey(tmp_path, 3) == survey(tmp_path)
    assert quick_survey(tmp_path, 2) is None
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "d").write_text("")
    assert quick_survey(tmp_path, 5) == survey(tmp_path)
    assert quick_survey(tmp_path, 4) is None


def test_folders_are_walked_to_a_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("septet.sandboxes.survey._MAX_DEPTH", 2)
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    for folder in ("a", "a/b", "a/b/c"):
        (tmp_path / folder / "file").write_text("x")
    assert {*survey(tmp_path).files} == {b"a/file", b"a/b/file"}


def test_new_changed_and_deleted_files_are_told_in_order(tmp_path: Path) -> None:
    for name in ("same", "changed", "gone"):
        (tmp_path / name).write_text("old")
    before = survey(tmp_path)
    (tmp_path / "changed").write_text("newer")
    (tmp_path / "gone").unlink()
    (tmp_path / "new").write_text("x")
    (tmp_path / "\udcff").write_text("")
    found = changes(tmp_path, before, survey(tmp_path))
    assert found == (
        FileChange(path="\\xff", kind="new", size=0, sha256=sha256(b"").hexdigest()),
        FileChange(path="changed", kind="changed", size=5, sha256=sha256(b"newer").hexdigest()),
        FileChange(path="gone", kind="deleted"),
        FileChange(path="new", kind="new", size=1, sha256=sha256(b"x").hexdigest()),
    )
    assert changes(tmp_path, before, before) == ()


def test_the_small_files_are_read_first_and_so_much_and_no_more(tmp_path: Path) -> None:
    before = survey(tmp_path)
    for name, size in {"a": 30, "b": 20, "c": 10}.items():
        (tmp_path / name).write_bytes(b"x" * size)
    after = survey(tmp_path)
    for most, read in ((9, set[str]()), (10, {"c"}), (29, {"c"}), (30, {"c", "b"}), (60, {"a", "b", "c"})):
        found = changes(tmp_path, before, after, ReadBudget(most))
        assert {change.path for change in found if change.sha256} == read
    assert not any(change.sha256 for change in changes(tmp_path, before, after, ReadBudget(99, -1.0)))


def test_of_many_new_folders_the_least_deep_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("septet.sandboxes.survey._MAX_OTHERS", 3)
    (tmp_path / "old").mkdir()
    before = survey(tmp_path)
    for name in ("old/x/y", "b", "a"):
        (tmp_path / name).mkdir(parents=True)
    assert others(before, survey(tmp_path)) == ("a", "b", "old/x")


@pytest.mark.parametrize(("size", "read"), [(99, True), (100, True), (101, False)])
def test_a_file_that_is_too_big_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, read: bool
) -> None:
    monkeypatch.setattr("septet.sandboxes.survey._MAX_DIGEST_SIZE", 100)
    before = survey(tmp_path)
    (tmp_path / "a").write_bytes(b"x" * size)
    (change,) = changes(tmp_path, before, survey(tmp_path))
    assert bool(change.sha256) is read


def test_a_large_file_is_read_in_pieces_and_one_with_holes_not(tmp_path: Path) -> None:
    content = os.urandom(MEBIBYTE + 1)
    before = survey(tmp_path)
    (tmp_path / "full").write_bytes(content)
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(MEBIBYTE + 1)
    with (tmp_path / "small holes").open("wb") as file:
        file.truncate(MEBIBYTE)
    found = {change.path: change.sha256 for change in changes(tmp_path, before, survey(tmp_path))}
    assert found == {
        "full": sha256(content).hexdigest(),
        "holes": "",
        "small holes": sha256(bytes(MEBIBYTE)).hexdigest(),
    }
