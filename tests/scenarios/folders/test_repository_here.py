"""Inside a repository, a goal is about the repository; a copy is worked on, and what is done is delivered."""

import subprocess
from pathlib import Path

from cli.commands import SMALL, Septet


def test_a_goal_inside_a_repository_is_about_it(septet: Septet, tmp_path: Path) -> None:
    inner = tmp_path / "project" / "docs"
    inner.mkdir(parents=True)
    (tmp_path / "project" / "notes.txt").write_text("mine\n")
    subprocess.run(["git", "init", "-q", tmp_path / "project"], check=True)
    command = [*septet.command, "run", "add", "-m", SMALL, "--yes", "-q", "-n", "adding"]
    done = subprocess.run(
        command,
        cwd=inner,
        env=septet.environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(one.name for one in (tmp_path / "project").iterdir()) == [
        ".git",
        "add.py",
        "docs",
        "notes.txt",
        "test_add.py",
    ]
