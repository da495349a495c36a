"""Files for the person: whole or not at all."""

import os
import stat
import threading
from pathlib import Path

import pytest

from septet.errors import BadUsage, StoreFailed
from septet.workspace.delivery import check_destination, write_file_atomically


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
