"""A repository read as a stranger to its configuration: its commit, its folders, its ids."""

import shutil
import subprocess
from pathlib import Path

import pytest

from septet.workspace.git import (
    GitFolders,
    blob_content,
    blob_id,
    git_folders,
    git_surroundings,
    open_git,
    prepare_repository,
    repository_of,
)

COMMIT = "0123456789abcdef" * 2 + "01234567"


def git(folder: Path, *words: str) -> str:
    names = ["-c", "user.name=n", "-c", "user.email=e@x"]
    return subprocess.run(
        ["git", *names, *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    (top / "src").mkdir(parents=True)
    (top / "src" / "a.py").write_text("x = 1\n")
    git(top, "init", "-q", "-b", "main")
    git(top, "add", ".")
    git(top, "commit", "-qm", "first")
    return top


def test_the_nearest_repository_is_a_folders_own(repository: Path, tmp_path: Path) -> None:
    assert repository_of(repository / "src") == repository.resolve()
    assert repository_of(repository) == repository.resolve()
    assert repository_of(tmp_path) is None
    (tmp_path / "link").symlink_to(repository / "src")
    assert repository_of(tmp_path / "link") == repository.resolve()


def test_the_commit_is_found_loose_packed_detached_and_in_a_worktree(
    repository: Path, tmp_path: Path
) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert git_folders(repository).commit() == head
    git(repository, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "side")
    assert git_folders(tmp_path / "other").commit() == head
    assert git_folders(tmp_path / "other").shared.resolve() == (repository / ".git").resolve()
    git(repository, "pack-refs", "--all")
    assert git_folders(repository).commit() == head
    git(repository, "checkout", "-q", "--detach")
    assert git_folders(repository).commit() == head
    assert git_folders(repository).own == git_folders(repository).shared == repository / ".git"


@pytest.mark.parametrize(
    ("files", "commit"),
    [
        ({}, ""),
        ({"HEAD": COMMIT}, COMMIT),
        ({"HEAD": "01234567" * 8}, "01234567" * 8),
        ({"HEAD": COMMIT[:-1]}, ""),
        ({"HEAD": "g" * 40}, ""),
        ({"HEAD": "ref: refs/heads/main"}, ""),
        ({"HEAD": "ref: refs/heads/a", "refs/heads/a": "ref: refs/heads/b", "refs/heads/b": COMMIT}, COMMIT),
        ({"HEAD": "ref: ../../outside", "../outside": COMMIT}, ""),
        ({"HEAD": "ref: HEAD"}, ""),
        ({"HEAD": "ref: refs/heads/m", "packed-refs": f"# x\n{COMMIT} refs/heads/m\n"}, COMMIT),
        ({"HEAD": "ref: refs/heads/m", "packed-refs": f"{COMMIT} refs/heads/m2\n"}, ""),
    ],
)
def test_a_head_is_followed_to_a_commit_and_not_out_of_the_repository(
    tmp_path: Path, files: dict[str, str], commit: str
) -> None:
    own = tmp_path / "deep" / "git"
    for name, text in files.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(f"{text}\n")
    assert GitFolders(own, own).commit() == commit


@pytest.mark.parametrize(
    ("config", "long"),
    [
        ("[extensions]\n\tObjectFormat = SHA256\n", True),
        ("[extensions]\n\tobjectformat = sha1\n", False),
        ("[x]\n\tnoobjectformat = sha256\n", False),
    ],
)
def test_long_ids_are_known_by_the_configuration(tmp_path: Path, config: str, long: bool) -> None:
    folders = GitFolders(tmp_path, tmp_path)
    assert folders.harmless_config() == "[core]\n\n\trepositoryformatversion = 0\n"
    (tmp_path / "config").write_text(config)
    made = tmp_path / "made"
    made.mkdir()
    prepare_repository(made, folders)
    assert ("objectformat = sha256" in (made / "config").read_text()) is long
    assert (made / "HEAD").read_text().startswith("ref: refs/heads/")


def test_ids_are_gits_own(repository: Path) -> None:
    short = git(repository, "rev-parse", "HEAD:src/a.py")
    assert blob_id(b"x = 1\n") == blob_id(b"x = 1\n", short) == short
    assert len(blob_id(b"x = 1\n", "0" * 64)) == 64
    assert blob_content(repository / "src", short) == b"x = 1\n"
    assert blob_content(repository, "0" * 40) is None
    assert blob_content(repository.parent, short) is None


def test_git_lists_names_and_says_nothing_where_it_fails(repository: Path) -> None:
    (repository / "bad\udc80.txt").write_text("")
    (repository / ".git" / "info" / "exclude").write_text("*.log\n")
    (repository / "a.log").write_text("")
    with open_git(repository, repository) as opened:
        assert opened is not None
        assert opened("ls-files", "-z") == ["src/a.py"]
        assert opened("ls-files", "-o", "--exclude-standard", "-z") == ["bad\udc80.txt"]
        assert opened("no-such-command") is None
    with open_git(repository, repository, with_index=False) as opened:
        assert opened is not None
        assert opened("ls-files", "-z") == []
    with open_git(repository / "none", repository) as opened:
        assert opened is None


def test_where_git_is_not_installed_nothing_is_opened(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", dict[str, str]().get)
    with open_git(repository, repository) as opened:
        assert opened is None


def test_variables_of_another_repository_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "OTHER"):
        monkeypatch.setenv(name, "x")
    kept = {name for name in git_surroundings() if name.startswith("GIT_") or name == "OTHER"}
    assert kept == {"GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "OTHER"}
