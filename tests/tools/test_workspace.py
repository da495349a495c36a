"""The workspace is hostile ground: links lead nowhere, files are whole, foreign files stay."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from septet.domain.files import FileRef
from septet.errors import BadUsage, StoreFailed
from septet.stores.memory import MemoryBlobs
from septet.tools.workspace import Workspace, inside

pytestmark = pytest.mark.anyio


async def file(blobs: MemoryBlobs, path: str, text: str) -> FileRef:
    return FileRef(path=path, sha256=await blobs.put(text.encode()), size=len(text))


async def test_a_version_is_shown_and_the_next_one_replaces_it(tmp_path: Path) -> None:
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path / "new" / "w")
    old = await file(blobs, "pkg/a.py", "old")
    await workspace.show([old], blobs, gone={})
    await workspace.show([await file(blobs, "b.py", "b")], blobs, gone={old.path: old.sha256})
    assert not (workspace.root / "pkg" / "a.py").exists()
    assert (workspace.root / "b.py").read_text() == "b"


async def test_what_the_person_changed_or_brought_is_not_taken_away(tmp_path: Path) -> None:
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path)
    old = await file(blobs, "a.py", "ours")
    (tmp_path / "a.py").write_text("edited by the person")
    (tmp_path / "notes.txt").write_text("foreign")
    await workspace.show([], blobs, gone={old.path: old.sha256})
    assert (tmp_path / "a.py").read_text() == "edited by the person"
    assert (tmp_path / "notes.txt").exists()


async def test_a_link_in_the_way_is_replaced_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path / "w")
    workspace.root.mkdir()
    (workspace.root / "a.py").symlink_to(victim)
    await workspace.show([await file(blobs, "a.py", "code")], blobs, gone={})
    assert victim.read_text() == "precious"
    assert (workspace.root / "a.py").read_text() == "code"


DYING = """
import os, signal, sys
from pathlib import Path
from septet.tools.workspace import Workspace
os.rename = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
Workspace(Path(sys.argv[1])).write("a.py", b"code")
"""


def test_what_a_kill_left_of_a_write_goes_with_the_next_one(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", DYING, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    Workspace(tmp_path).write("a.py", b"code")
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


async def test_a_linked_folder_is_not_entered(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    blobs, workspace = MemoryBlobs(), Workspace(tmp_path / "w")
    workspace.root.mkdir()
    (workspace.root / "pkg").symlink_to(outside)
    with pytest.raises(StoreFailed):
        await workspace.show([await file(blobs, "pkg/a.py", "code")], blobs, gone={})
    assert list(outside.iterdir()) == []


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
        inside(path)


async def test_a_file_as_workspace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadUsage, match="is a file"):
        await Workspace(tmp_path / "file" / "deeper").check()


async def test_checking_makes_nothing(tmp_path: Path) -> None:
    await Workspace(tmp_path / "later").check()
    assert list(tmp_path.iterdir()) == []
