"""The workspace is hostile ground: links lead nowhere, files are whole, foreign files stay."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from septet.domain.files import FileRef, Layout
from septet.errors import BadUsage, StoreFailed
from septet.stores.memory import MemoryBlobs
from septet.workspace.files import (
    MAX_PATH_BYTES,
    Workspace,
    in_thread,
    path_and_parents,
    path_problem,
    relative_parts,
)

pytestmark = pytest.mark.anyio


async def file(blobs: MemoryBlobs, path: str, text: str) -> FileRef:
    return FileRef(path=path, sha256=await blobs.put(text.encode()), size=len(text))


def layout(*files: FileRef, gone: Mapping[str, tuple[str, ...]] | None = None) -> Layout:
    return Layout(files=files, removable=gone or {})


async def test_a_version_is_shown_and_the_next_one_replaces_it(tmp_path: Path) -> None:
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path / "new" / "w")
    old = await file(blobs, "pkg/a.py", "old")
    await workspace.write_layout(layout(old), blobs)
    await workspace.write_layout(
        layout(await file(blobs, "b.py", "b"), gone={old.path: (old.sha256,)}), blobs
    )
    assert not (workspace.root / "pkg" / "a.py").exists()
    assert (workspace.root / "b.py").read_text() == "b"


async def test_what_the_person_changed_or_brought_is_not_taken_away(tmp_path: Path) -> None:
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path)
    old = await file(blobs, "a.py", "ours")
    (tmp_path / "a.py").write_text("edited by the person")
    (tmp_path / "notes.txt").write_text("foreign")
    await workspace.write_layout(layout(gone={old.path: (old.sha256,)}), blobs)
    assert (tmp_path / "a.py").read_text() == "edited by the person"
    assert (tmp_path / "notes.txt").exists()


async def test_only_what_is_expected_is_replaced(tmp_path: Path) -> None:
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path)
    (tmp_path / "a.py").write_text("edited by the person")
    (tmp_path / "b.py").write_text("ours")
    ours = await file(blobs, "b.py", "ours")
    files = tuple([await file(blobs, name, "new") for name in ("a.py", "b.py", "c.py")])
    await workspace.write_layout(Layout(files=files, replaceable={"b.py": (ours.sha256,)}), blobs)
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert texts == {"a.py": "edited by the person", "b.py": "new", "c.py": "new"}


async def test_a_link_in_the_way_is_put_aside_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path / "w")
    workspace.root.mkdir()
    (workspace.root / "a.py").symlink_to(victim)
    await workspace.write_layout(layout(await file(blobs, "a.py", "code")), blobs)
    assert victim.read_text() == "precious"
    assert (workspace.root / "a.py").read_text() == "code"
    (aside,) = workspace.root.glob("a.py.aside-*")
    assert aside.is_symlink()


async def test_what_nobody_created_is_put_aside_and_never_deleted(tmp_path: Path) -> None:
    """A folder where a file shall be, a file and a link where folders shall be."""
    outside = tmp_path / "outside"
    outside.mkdir()
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path / "w")
    (workspace.root / "a.py").mkdir(parents=True)
    (workspace.root / "a.py" / "kept.txt").write_text("precious")
    (workspace.root / "one").write_text("precious")
    (workspace.root / "two").symlink_to(outside)
    files = [await file(blobs, path, "code") for path in ("a.py", "one/b.py", "two/c.py")]
    await workspace.write_layout(layout(*files), blobs)
    assert all((workspace.root / one.path).read_text() == "code" for one in files)
    assert list(outside.iterdir()) == []
    assert [path.read_text() for path in workspace.root.glob("*.aside-*/kept.txt")] == ["precious"]
    assert [path.read_text() for path in workspace.root.glob("one.aside-*")] == ["precious"]


def test_folders_that_runs_made_go_as_far_as_they_are_empty(tmp_path: Path) -> None:
    """Deeper than a path can be long, and shut."""
    top = os.open(tmp_path, os.O_RDONLY)
    here = os.dup(top)
    for _ in range(3_000):
        os.mkdir("d" * 50, dir_fd=here)
        deeper = os.open("d" * 50, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    os.close(top)
    (tmp_path / "shut").mkdir(mode=0)
    (tmp_path / "held" / "empty").mkdir(parents=True)
    (tmp_path / "held" / "mine.txt").write_text("precious")
    (tmp_path / "link").symlink_to("held")
    workspace = Workspace(tmp_path)
    for name in ("d" * 50, "shut", "held", "link"):
        workspace.remove_known(name, ("",))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["held", "mine.txt"]


def test_a_file_keeps_its_mode_and_a_new_one_is_plain(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o751)
    workspace = Workspace(tmp_path)
    workspace.write("run.sh", b"new")
    workspace.write("new.sh", b"new")
    assert stat.S_IMODE((tmp_path / "run.sh").stat().st_mode) == 0o751
    assert stat.S_IMODE((tmp_path / "new.sh").stat().st_mode) & 0o111 == 0


DYING = """
import os, signal, sys
from pathlib import Path
from septet.workspace.files import Workspace
os.rename = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
Workspace(Path(sys.argv[1])).write("a.py", b"code")
"""


def test_what_a_kill_left_of_a_write_goes_with_the_next_one(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", DYING, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    Workspace(tmp_path).write("a.py", b"code")
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


async def test_reading_never_hangs_and_never_leaves_the_workspace(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    workspace = Workspace(tmp_path / "w")
    workspace.root.mkdir()
    (workspace.root / "link").symlink_to(secret)
    os.mkfifo(workspace.root / "pipe")
    (workspace.root / "folder").mkdir()
    for name in ("link", "pipe", "folder", "absent"):
        assert await workspace.content(name) is None


@pytest.mark.parametrize("path", ["/etc/passwd", "../a", "a/../../b", "", "a//b", "./a", "a\0b"])
def test_paths_that_lead_out_are_refused(path: str) -> None:
    with pytest.raises(BadUsage, match="not a path inside"):
        relative_parts(path)


async def test_a_file_as_workspace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadUsage, match="is a file"):
        await Workspace(tmp_path / "file" / "deeper").check()


async def test_checking_makes_nothing(tmp_path: Path) -> None:
    await Workspace(tmp_path / "later").check()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "existing", "reason"),
    [
        ("a/b.py", (), None),
        ("/a", (), "'/a' is not a path inside the workspace"),
        ("~/a", (), "'~/a' is not a path inside the workspace"),
        ("a/./b", (), "'a/./b' is not a path inside the workspace"),
        ("a" * MAX_PATH_BYTES, (), None),
        ("a" * (MAX_PATH_BYTES + 1), (), f"'{'a' * MAX_PATH_BYTES}…' is too long"),
        ("ä" * (MAX_PATH_BYTES // 2 + 1), (), f"'{'ä' * (MAX_PATH_BYTES // 2 + 1)}…' is too long"),
        ("a?b", (), "'a?b' holds a character that file names may not have everywhere"),
        ("a\x1fb", (), "'a\x1fb' holds a character that file names may not have everywhere"),
        ("a b", (), None),
        ("a\ue000", (), None),
        ("x/NUL .txt", (), "'x/NUL .txt' names a device"),
        ("lpt9", (), "'lpt9' names a device"),
        ("lpt", (), None),
        ("a.", (), "'a.' begins or ends with a space or a dot that some systems drop"),
        (" a", (), "' a' begins or ends with a space or a dot that some systems drop"),
        (".Git/x", (), "'.Git/x' belongs to the repository, not to the program"),
        ("a.py", ("A.py",), "'a.py' differs only in case from 'A.py'"),
        ("a.py", ("a.py",), None),
    ],
)
def test_a_path_is_good_everywhere_or_the_reason_is_named(
    path: str, existing: tuple[str, ...], reason: str | None
) -> None:
    found = path_problem(path, existing)
    assert (found.reason if found else None) == reason


def test_a_path_has_its_parents() -> None:
    assert path_and_parents("a/b/c") == {"a", "a/b", "a/b/c"}


@pytest.fixture
def obstacles(tmp_path: Path) -> Workspace:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    return Workspace(tmp_path)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("new.py", ""),
        ("folder/new.py", ""),
        ("folder/inner/new.py", ""),
        ("none/new.py", ""),
        ("file", ""),
        ("folder", "is a folder already"),
        ("folder/inner", "is a folder already"),
        ("link", "is a link already"),
        ("pipe", "is no file already"),
        ("file/new.py", "leads through 'file', which is a file"),
        ("link/new.py", "leads through 'link', which is a link"),
        ("pipe/new.py", "leads through 'pipe', which is a file"),
        ("folder/none/deep/new.py", ""),
    ],
)
def test_what_stands_in_the_way_of_a_file_is_named(obstacles: Workspace, path: str, why: str) -> None:
    assert obstacles.obstacle(path) == why
    assert Workspace(obstacles.root / "later").obstacle(path) == ""


def test_at_most_so_much_of_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    workspace = Workspace(tmp_path)
    assert [workspace.read("a", most) for most in (4, 5, 6)] == [b"1234", b"12345", b"12345"]


def test_what_is_appended_comes_after_what_is_there(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "new")
    workspace.append("log/a", b"1")
    workspace.append("log/a", b"2")
    assert (workspace.root / "log" / "a").read_bytes() == b"12"
    (workspace.root / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="symbolic links"):
        workspace.append("link", b"x")
    assert not (tmp_path / "outside").exists()


def test_only_a_known_content_is_removed(obstacles: Workspace) -> None:
    digest = obstacles.digest("file")
    obstacles.remove_known("file", ("0" * 64, ""))
    obstacles.remove_known("pipe", (digest,))
    obstacles.remove_known("folder", (digest,))
    assert {path.name for path in obstacles.root.iterdir()} == {"file", "folder", "link", "pipe"}
    for name in ("file", "pipe", "link", "folder", "none"):
        obstacles.remove_known(name, (digest, ""))
    assert [*obstacles.root.iterdir()] == []


def test_folders_and_links_at_a_files_place_are_put_aside(obstacles: Workspace) -> None:
    for path in ("folder", "link", "pipe", "file/deep", "empty"):
        (obstacles.root / "empty").mkdir(exist_ok=True)
        obstacles.write(path, b"new")
        assert obstacles.read(path) == b"new"
    aside = sorted(path.name.partition(".aside-")[0] for path in obstacles.root.glob("*.aside-*"))
    assert aside == ["file", "folder", "link", "pipe"], "an empty folder just goes"


def test_a_folder_that_lost_its_permissions_is_usable_again(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.create("a/b.py", b"x")
    (workspace.root / "a").chmod(0o050)
    workspace.write("a/c.py", b"y")
    assert stat.S_IMODE((workspace.root / "a").stat().st_mode) == 0o750
    workspace.root.chmod(0)
    workspace.create("d.py", b"z")
    assert stat.S_IMODE(workspace.root.stat().st_mode) == 0o700


@pytest.mark.parametrize("folder", ["/", "/etc", "/usr/lib", "/tmp"])
async def test_a_folder_of_the_system_is_no_workspace(folder: str) -> None:
    with pytest.raises(BadUsage, match="is too wide for a workspace"):
        await Workspace(Path(folder)).check()


async def test_the_persons_home_is_no_workspace_but_a_folder_in_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BadUsage, match="is too wide"):
        await Workspace(tmp_path).check()
    await Workspace(tmp_path / "work").check()


async def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadUsage) as itself:
        await Workspace(tmp_path / "file").check()
    assert itself.value.cause == f"{tmp_path}/file is a file"
    with pytest.raises(BadUsage) as above:
        await Workspace(tmp_path / "file" / "deeper").check()
    assert (
        above.value.cause == f"{tmp_path}/file is a file, so that {tmp_path}/file/deeper cannot be a folder"
    )


async def test_disk_work_that_fails_says_where() -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device", "/a/b")

    with pytest.raises(StoreFailed) as failed:
        await in_thread(fail)
    assert failed.value.cause == "the workspace cannot be used: No space left on device (/a/b)"
    assert await in_thread(lambda: 5) == 5
