"""Files for the person: whole or not at all."""

import os
import stat
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from septet.domain.base import DeliveredFile, EntryKind, FileState
from septet.errors import BadUsage, StoreFailed
from septet.workspace.delivery import (
    PlannedChange,
    check_destination,
    diff_of,
    has_marks,
    merge_file,
    plan_delivery,
    plan_handover,
    write_file_atomically,
)


def test_a_file_is_replaced_in_one_move_and_keeps_its_rights(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(target)
    write_file_atomically(link, b"new")
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "link"}


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write_file_atomically, args=(pipe, b"through"))
    writer.start()
    assert pipe.read_bytes() == b"through"
    writer.join()


@pytest.mark.parametrize("name", [".", "none/a.txt", "file/a.txt", "x" * 300])
def test_what_cannot_be_written_is_said_before(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadUsage):
        check_destination(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"file"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_said() -> None:
    with pytest.raises(StoreFailed, match="No space left"):
        write_file_atomically(Path("/dev/full"), b"content")


def state(path: str, content: bytes | None, kind: EntryKind = "file") -> FileState:
    if content is None:
        return FileState(path=path)
    return FileState(path=path, sha256=sha256(content).hexdigest(), size=len(content), kind=kind)


BASE, TEAM, MINE = b"1\n2\n3\n4\n5\n", b"1\n2\n3\n4\nteam\n", b"mine\n2\n3\n4\n5\n"
BOTH = b"mine\n2\n3\n4\nteam\n"


def planned(folder: Path, base: bytes | None, now: bytes | None, after: bytes | None) -> DeliveredFile | None:
    if now is not None:
        (folder / "a").write_bytes(now)
    contents = {sha256(one).hexdigest(): one for one in (base, after) if one is not None}
    found = plan_delivery(folder, PlannedChange(base=state("a", base), after=state("a", after)), contents)
    if found is not None and found.after.sha256:
        assert sha256(contents[found.after.sha256]).hexdigest() == found.after.sha256
    return found


@pytest.mark.parametrize(
    ("base", "now", "after", "how", "becomes"),
    [
        (BASE, BASE, TEAM, "written", TEAM),
        (BASE, MINE, TEAM, "merged", BOTH),
        (BASE, b"x\n2\n3\n4\ny\n", TEAM, "conflict", TEAM),
        (BASE, None, TEAM, "conflict", TEAM),
        (None, None, TEAM, "written", TEAM),
        (None, MINE, TEAM, "conflict", TEAM),
        (BASE, BASE, None, "written", None),
        (BASE, MINE, None, "conflict", None),
        (BASE, b"mine\0\n", TEAM, "conflict", TEAM),
        (
            BASE,
            BASE,
            b"<<<<<<< the folder\n>>>>>>> the team\n",
            "conflict",
            b"<<<<<<< the folder\n>>>>>>> the team\n",
        ),
    ],
)
def test_a_delivery_writes_merges_or_leaves_a_file_alone(
    tmp_path: Path,
    base: bytes | None,
    now: bytes | None,
    after: bytes | None,
    how: str,
    becomes: bytes | None,
) -> None:
    found = planned(tmp_path, base, now, after)
    assert found is not None
    assert (found.path, found.how, found.after) == ("a", how, state("a", becomes))
    assert found.before == state("a", now)
    merged = how == "merged"
    assert found.base_before == (state("a", base) if merged else None)
    assert found.base_after == (state("a", after) if merged else None)


@pytest.mark.parametrize(
    ("base", "now", "after"), [(BASE, TEAM, TEAM), (BASE, MINE, BASE), (BASE, None, None)]
)
def test_what_is_there_already_or_was_not_changed_is_not_delivered(
    tmp_path: Path, base: bytes | None, now: bytes | None, after: bytes | None
) -> None:
    assert planned(tmp_path, base, now, after) is None


def test_a_file_keeps_the_persons_rights_to_run_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(BASE)
    (tmp_path / "a").chmod(0o755)
    found = planned(tmp_path, BASE, None, TEAM)
    assert found is not None
    assert found.after == state("a", TEAM, "program")


def test_a_secret_a_link_and_a_folder_in_the_way_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("")
    (tmp_path / ".env").write_bytes(BASE)
    contents = {sha256(TEAM).hexdigest(): TEAM, sha256(BASE).hexdigest(): BASE}
    for path in ("link", "folder", ".env"):
        wish = PlannedChange(base=state(path, BASE), after=state(path, TEAM))
        found = plan_delivery(tmp_path, wish, dict(contents))
        assert found is not None
        assert (path, found.how) == (path, "conflict")
    wish = PlannedChange(base=state(".env", BASE), after=state(".env", TEAM))
    allowed = plan_delivery(tmp_path, wish, dict(contents), (".env",))
    assert allowed is not None
    assert allowed.how == "written"


def test_files_that_go_come_first_and_make_room(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(BASE)
    wishes = [
        PlannedChange(base=state("a", None), after=state("a", TEAM)),
        PlannedChange(base=state("a/b", BASE), after=state("a/b", None)),
    ]
    contents = {sha256(TEAM).hexdigest(): TEAM, sha256(BASE).hexdigest(): BASE}
    found = plan_handover(tmp_path, wishes, dict(contents))
    assert [(one.path, one.how) for one in found] == [("a/b", "written"), ("a", "written")]
    (tmp_path / "a" / "mine").write_text("")
    blocked = plan_handover(tmp_path, wishes, dict(contents))
    assert [(one.path, one.how) for one in blocked] == [("a/b", "written"), ("a", "conflict")]


@pytest.mark.parametrize(
    ("base", "folder", "team", "content", "clean"),
    [
        (BASE, BASE, TEAM, TEAM, True),
        (BASE, TEAM, TEAM, TEAM, True),
        (BASE, MINE, BASE, MINE, True),
        (BASE, MINE, TEAM, BOTH, True),
        (BASE, MINE, b"team\n2\n3\n4\n5\n", b"", False),
        (BASE, b"\0", TEAM, None, False),
    ],
)
def test_both_sides_count_in_a_merge(
    base: bytes, folder: bytes, team: bytes, content: bytes | None, clean: bool
) -> None:
    merge = merge_file(base, folder, team)
    assert merge.clean is clean
    if content:
        assert merge.content == content
    elif content is None:
        assert merge.content is None
    else:
        assert merge.content is not None
        assert has_marks(merge.content)
    assert not has_marks(BOTH)


def test_a_diff_names_binary_files_and_shows_texts() -> None:
    contents = {sha256(one).hexdigest(): one for one in (b"1\n", b"2\n", b"\0")}
    pairs = [
        (state("a", b"1\n"), state("a", b"2\n")),
        (state("b", None), state("b", b"1\n")),
        (state("c", b"1\n"), state("c", b"\0")),
        (state("d", b"1\n"), state("d", None)),
    ]
    assert diff_of(pairs, contents) == (
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
        "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+1\n"
        "Binary files a/c and b/c differ\n"
        "--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
    )
