"""`restore`, `rename` and `rm` as a person uses them."""

from pathlib import Path

import pytest
from autocoder.hello import CASES, fill, write_script
from cli.commands import SMALL, Septet


@pytest.fixture
def adding(septet: Septet) -> Septet:
    assert septet("run", "add", "-m", SMALL, "--yes", "-q", "-n", "adding").returncode == 0
    return septet


def test_an_old_version_comes_back_and_can_be_taken_back(adding: Septet) -> None:
    program = adding.home / "work" / "adding" / "add.py"
    newest = program.read_text()
    done = adding("restore", "adding", "v1")
    assert done.returncode == 0, done.stderr
    assert "return a - b" in program.read_text()
    assert "septet restore adding s1 takes that back" in done.stdout
    assert adding("restore", "adding", "s1").returncode == 0
    assert program.read_text() == newest


@pytest.mark.parametrize(
    ("point", "reason"), [("v9", "has no version"), ("s9", "has no snapshot"), ("x", "has no version")]
)
def test_a_point_that_is_not_there_is_named(adding: Septet, point: str, reason: str) -> None:
    refused = adding("restore", "adding", point)
    assert refused.returncode == 2
    assert reason in refused.stderr


def test_an_autocoders_snapshots_bring_everything_back(septet: Septet, tmp_path: Path) -> None:
    case = CASES["wrong code"]
    project = fill(tmp_path / "project", case.files)
    (project / "empty").mkdir()
    (project / "picture.bin").write_bytes(bytes(range(256)))
    (project / "link").symlink_to("main.py")
    model = write_script(tmp_path / "script.yaml", case.steps)
    done = septet("run", "greet", "-t", "autocoder", "-m", model, "-C", str(project), "-q", "-n", "hello")
    assert done.returncode == 0, done.stderr
    (project / "empty").rmdir()
    (project / "picture.bin").unlink()
    (project / "link").unlink()
    assert septet("restore", "hello", "s1").returncode == 0
    assert (project / "main.py").read_text() == case.files["main.py"]
    assert (project / "empty").is_dir()
    assert (project / "picture.bin").read_bytes() == bytes(range(256))
    assert str((project / "link").readlink()) == "main.py"


def test_a_chat_gets_another_name(adding: Septet) -> None:
    assert adding("rename", "adding", "sums").returncode == 0
    assert "sums: done" in adding("show", "sums").stdout
    assert adding("show", "adding").returncode == 2
    assert adding("rename", "sums", "../up").returncode == 2
    assert adding("run", "add", "-m", SMALL, "--yes", "-q", "-n", "other").returncode == 0
    taken = adding("rename", "other", "sums")
    assert taken.returncode == 75
    assert "exists already" in taken.stderr


def test_a_chat_is_deleted_only_when_that_is_sure(adding: Septet, tmp_path: Path) -> None:
    asked = adding("rm", "adding")
    assert asked.returncode == 2
    assert "--yes" in asked.stderr
    assert adding("rm", "adding", "--yes").returncode == 0
    assert adding("list").stdout == ""
    assert not (adding.home / "work" / "adding").exists()
    assert adding("run", "add", "-m", SMALL, "--yes", "-q", "-n", "mine", "-C", "mine").returncode == 0
    assert "is yours and stays" in adding("rm", "mine", "--yes").stdout
    assert (tmp_path / "mine" / "add.py").exists()
