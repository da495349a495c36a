"""Passing folders: held by their owner, gone with it, and never taken from anybody else."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from septet.common.temporary import (
    make_temporary_folder,
    remove_folder,
    remove_stale_folders,
    temporary_folder,
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def abandoned(kind: str) -> Path:
    """A folder whose owner is no more."""
    made = make_temporary_folder(kind)
    os.close(made.lock)
    return made.path


def test_a_folder_lasts_as_long_as_its_context() -> None:
    with temporary_folder("run") as folder:
        (folder / "file").write_text("x")
        remove_stale_folders()
        assert (folder / "file").exists()
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_what_nobody_holds_is_swept() -> None:
    left = abandoned("run")
    (left / "deep" / "er").mkdir(parents=True)
    remove_stale_folders()
    assert not left.exists()


def test_foreign_names_and_things_stay(temporary: Path) -> None:
    target = temporary / "mine"
    target.mkdir()
    (target / "letter").write_text("dear")
    (temporary / "septet-temporary-run-abcdefgh").symlink_to(target)
    (temporary / "septet-temporary-run-12345678").write_text("a file")
    for name in (
        "septet-temporary-run",
        "septet-temporary-run-abc",
        "septet-run-abcdefgh",
        "septet-temporary-RUN-abcdefgh",
    ):
        (temporary / name).mkdir()
    before = set(temporary.iterdir())
    remove_stale_folders()
    assert set(temporary.iterdir()) == before
    assert (target / "letter").read_text() == "dear"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_stays() -> None:
    left = abandoned("run")
    os.chown(left, 4242, 4242)
    remove_stale_folders()
    assert left.exists()


def test_what_a_program_has_shut_goes_too_and_links_lead_nowhere(tmp_path: Path) -> None:
    target, parent = tmp_path / "target", tmp_path / "parent"
    target.mkdir(mode=0o750)
    parent.mkdir()
    parent.chmod(0o777)
    (tmp_path / "target" / "kept").write_text("x")
    remove_folder(tmp_path / "absent")
    (parent / "folder").mkdir()
    (parent / "folder" / "link").symlink_to(target)
    (parent / "folder" / "shut").mkdir(mode=0)
    remove_folder(parent / "folder")
    assert not (parent / "folder").exists()
    assert (target / "kept").exists()
    assert target.stat().st_mode & 0o777 == 0o750


OWNER = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from septet.common.temporary import make_temporary_folder, temporary_folder, remove_stale_folders
for _ in range(150):
    with temporary_folder("race") as folder:
        (folder / "file").write_text("x")
        remove_stale_folders()
        assert (folder / "file").read_text() == "x"
make_temporary_folder("last")
"""


def test_makers_and_sweepers_do_not_disturb_each_other(temporary: Path) -> None:
    words = [sys.executable, "-c", OWNER, str(temporary)]
    owners = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for owner in owners:
        _, complaint = owner.communicate(timeout=120)
        assert (owner.returncode, complaint) == (0, "")
    remove_stale_folders()
    assert list(temporary.iterdir()) == []


def test_one_for_the_whole_process_can_be_read_by_others(temporary: Path) -> None:
    source = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[1];"
        "from septet.common.temporary import process_folder, remove_stale_folders;"
        "folder = process_folder('etc'); remove_stale_folders(); print(oct(folder.stat().st_mode & 0o777))"
    )
    words = [sys.executable, "-c", source, str(temporary)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "0o755\n"
    assert list(temporary.iterdir()) == []
