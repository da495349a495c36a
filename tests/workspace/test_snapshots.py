"""What was there comes back byte by byte, whatever happened since."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from septet.domain.events import SnapshotTaken
from septet.stores.memory import MemoryBlobs
from septet.workspace import listing
from septet.workspace.files import Workspace
from septet.workspace.snapshots import (
    TOLD_NAMES,
    Snapshot,
    read_words,
    recall,
    restore_snapshot,
    secret_words,
    snapshot_of,
    take_snapshot,
)

pytestmark = pytest.mark.anyio

Tree = dict[str, object]


def picture(root: Path) -> Tree:
    """Everything that a snapshot vouches for."""
    seen: Tree = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            seen[name] = ("link", path.readlink())
        elif path.is_dir():
            seen[name] = "folder"
        else:
            seen[name] = (path.read_bytes(), bool(path.stat().st_mode & stat.S_IXUSR))
    return seen


def fill(root: Path) -> None:
    (root / "pkg" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "main.py").write_text("print('hi')\n")
    (root / "pkg" / "data.bin").write_bytes(bytes(range(256)) * 9)
    (root / "pkg" / "deep" / "ümläut ☃.txt").write_text("ß")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link.py").symlink_to("main.py")
    (root / "nowhere").symlink_to("/does/not/exist")


async def back(workspace: Workspace, snapshot: Snapshot, blobs: MemoryBlobs) -> None:
    """As `septet restore` does it: what is there now is kept first."""
    await restore_snapshot(workspace, snapshot, await snapshot_of(workspace, set(), blobs), blobs)


async def test_a_tree_comes_back(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    fill(root)
    before, blobs, workspace = picture(root), MemoryBlobs(), Workspace(root)
    event, _ = await take_snapshot(workspace, set(), blobs, 1)
    (root / "main.py").write_text("other")
    (root / "pkg" / "data.bin").unlink()
    (root / "pkg" / "data.bin").mkdir()
    (root / "pkg" / "data.bin" / "inside").write_text("x")
    (root / "empty").rmdir()
    (root / "new").mkdir()
    (root / "new" / "file").write_text("x")
    (root / "link.py").unlink()
    (root / "link.py").write_text("no link any more")
    (root / "run.sh").chmod(0o644)
    os.mkfifo(root / "pipe")
    await back(workspace, await recall(event.manifest, blobs), blobs)
    assert picture(root) == before


async def test_a_restore_writes_nothing_outside(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "a.py").write_text("precious")
    root = tmp_path / "w"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "a.py").write_text("ours")
    blobs, workspace = MemoryBlobs(), Workspace(root)
    snapshot = await snapshot_of(workspace, set(), blobs)
    (root / "pkg" / "a.py").unlink()
    (root / "pkg").rmdir()
    (root / "pkg").symlink_to(victim)
    await back(workspace, snapshot, blobs)
    assert (victim / "a.py").read_text() == "precious"
    assert (root / "pkg" / "a.py").read_text() == "ours"
    assert not (root / "pkg").is_symlink()


async def test_caches_and_the_repository_are_left_alone(tmp_path: Path) -> None:
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref")
    snapshot = await snapshot_of(workspace, set(), blobs)
    assert snapshot.entries == ()
    (tmp_path / "__pycache__").mkdir()
    await back(workspace, snapshot, blobs)
    assert (tmp_path / ".git" / "HEAD").read_text() == "ref"
    assert (tmp_path / "__pycache__").exists()


async def test_a_workspace_that_is_not_there_is_an_empty_one(tmp_path: Path) -> None:
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path / "later")
    snapshot = await snapshot_of(workspace, set(), blobs)
    assert snapshot.entries == ()
    await back(workspace, snapshot, blobs)
    assert picture(tmp_path / "later") == {}


async def test_what_could_not_be_kept_is_not_touched(tmp_path: Path) -> None:
    """Too large, secret, ignored, or one of too many: a restore neither removes nor replaces it."""
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path)
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "b.txt").write_text("old")
    (tmp_path / "ignored").write_text("x")
    snapshot = await snapshot_of(workspace, {"ignored"}, blobs)
    (tmp_path / "a.txt").write_text("-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBg\n")
    (tmp_path / "b.txt").write_text("new")
    (tmp_path / ".env").write_text("PASSWORD=x")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(65 << 20)
    await back(workspace, snapshot, blobs)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env", "a.txt", "b.txt", "ignored", "large"]
    assert "PRIVATE KEY" in (tmp_path / "a.txt").read_text()
    assert (tmp_path / "b.txt").read_text() == "old"


async def test_of_too_much_a_part_is_kept_and_nothing_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path)
    monkeypatch.setattr(listing, "MOST", 3)
    for name in "abcdef":
        (tmp_path / name).write_text(name)
    snapshot = await snapshot_of(workspace, set(), blobs)
    assert not snapshot.whole
    (tmp_path / "a").write_text("changed")
    await back(workspace, snapshot, blobs)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: name for name in "abcdef"}


NAMES = st.sampled_from(["a", "b", "c.py", "d"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
STEPS = st.one_of(
    st.tuples(st.just("write"), PATHS, st.binary(max_size=20)),
    st.tuples(st.just("link"), PATHS, st.just(b"a")),
    st.tuples(st.just("folder"), PATHS, st.just(b"")),
    st.tuples(st.just("remove"), PATHS, st.just(b"")),
)


def step(root: Path, kind: str, name: str, content: bytes) -> None:
    """Something that a program or a person may do; what the system does not allow is left undone."""
    path = root / name
    try:
        if kind == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        elif kind == "link":
            path.symlink_to(content.decode())
        elif kind == "folder":
            path.mkdir(parents=True)
        elif path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
    except OSError:
        return


@settings(max_examples=60, deadline=None)
@given(first=st.lists(STEPS, max_size=8), then=st.lists(STEPS, max_size=8))
async def test_any_edits_can_be_undone(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[str, str, bytes]],
    then: list[tuple[str, str, bytes]],
) -> None:
    root = tmp_path_factory.mktemp("w")
    for one in first:
        step(root, *one)
    before, blobs, workspace = picture(root), MemoryBlobs(), Workspace(root)
    snapshot = await snapshot_of(workspace, set(), blobs)
    for one in then:
        step(root, *one)
    await back(workspace, snapshot, blobs)
    assert picture(root) == before


@pytest.mark.parametrize(
    ("secrets", "ignored", "words"),
    [
        ((), 0, "reads 1 file of /w"),
        ((), 3, "reads 1 file of /w; leaves out 3 ignored"),
        ((".env",), 0, "reads 1 file of /w; leaves out 1 that looks like a secret (.env)"),
        (("a", "b"), 1, "reads 1 file of /w; leaves out 1 ignored, 2 that look like secrets (a, b)"),
    ],
)
def test_what_a_snapshot_leaves_out_is_said(secrets: tuple[str, ...], ignored: int, words: str) -> None:
    event = SnapshotTaken(
        number=1, manifest="", entries=1, folder="/w", files=1, ignored=ignored, secrets=secrets
    )
    assert read_words(event) == words
    many = tuple("abcdefghijklmnopqrstuvwxyz")
    assert (
        secret_words(many[:TOLD_NAMES])
        == f"{TOLD_NAMES} that look like secrets ({', '.join(many[:TOLD_NAMES])})"
    )
    assert secret_words(many).endswith(f"({', '.join(many[:TOLD_NAMES])}, …)")
