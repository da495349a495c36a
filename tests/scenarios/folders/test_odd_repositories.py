"""Repositories as people really have them: odd names, encodings, states of git. The work ends, and harms nothing."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cli.commands import Septet
from sampling import sampled
from scenarios.assistant.scripts import calls, says
from scenarios.folders.chats import ACCEPT, Turn, fill, git, repository, script

MEMBERS = ("planner", "proxy", "coder", "runner", "reviewer")
TEAM = f"members: [{', '.join(f'{{role: {role}, form: tools}}' for role in MEMBERS)}]\n"
CALC = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
    "conftest.py": "",
}
MENDED = "def add(a, b):\n    return a + b\n"
PLAN = says("planner", "1. add adds\n   check: mends tests/test_calc.py::test_add\n")


def edit(path: str, old: str, new: str) -> tuple[str, Mapping[str, object]]:
    return "edit", {"edits": [{"path": path, "old": old, "new": new}]}


MEND = edit("calc.py", "a - b", "a + b")


NAMED = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "n"), ("EMAIL", "n@example.org"))
}


def mend(
    septet: Septet, folder: Path, *wishes: tuple[str, Mapping[str, object]]
) -> subprocess.CompletedProcess[str]:
    """A chat that mends the planted bug, and does what else is wished in the same answer."""
    turns: tuple[Turn, ...] = (PLAN, calls("coder", *wishes, MEND), says("coder", "mended"), ACCEPT)
    (septet.home.parent / "team.yaml").write_text(TEAM)
    model = script(septet.home.parent, *turns)
    return septet(
        "run", "mend add", "-t", "team.yaml", "-m", model, "-C", str(folder), "--name", "c", "--yes"
    )


def odd_name(project: Path) -> None:
    (project / os.fsdecode(b"caf\xe9 \xff.txt")).write_text("x")


def byte_order_mark(project: Path) -> None:
    (project / "calc.py").write_bytes(b"\xef\xbb\xbf" + CALC["calc.py"].encode())


def carriage_returns(project: Path) -> None:
    (project / "calc.py").write_bytes(CALC["calc.py"].replace("\n", "\r\n").encode())


def no_last_line_end(project: Path) -> None:
    (project / "calc.py").write_bytes(CALC["calc.py"].rstrip("\n").encode())


def program(project: Path) -> None:
    (project / "calc.py").chmod(0o750)


def another_owner(project: Path) -> None:
    for path in (project, *project.rglob("*")):
        os.chown(path, 65534, 65534)


def unmerged(project: Path) -> None:
    for branch, start, text in (("one", "HEAD", "a\n"), ("two", "HEAD~1", "b\n")):
        git(project, "checkout", "-q", "-b", branch, start)
        (project / "notes.txt").write_text(text)
        commit(project)
    with pytest.raises(subprocess.CalledProcessError):
        git(project, "merge", "-q", "one")


def named_pipe(project: Path) -> None:
    os.mkfifo(project / "pipe")


def other_letters(project: Path) -> None:
    if not (project / "Calc.py").exists():  # two files of one name here
        (project / "Calc.py").write_text("def add():\n    pass\n")
        commit(project)


def commit(project: Path) -> None:
    git(project, "add", "-A")
    git(project, "commit", "-qm", "more")


ODD: Mapping[str, Callable[[Path], None]] = {
    "a name that is no UTF-8": odd_name,
    "a byte order mark": byte_order_mark,
    "carriage returns": carriage_returns,
    "no last line end": no_last_line_end,
    "a mode of its own": program,
    "another owner": another_owner,
    "a merge that is under way": unmerged,
    "a named pipe": named_pipe,
    "a file of the same name in other letters": other_letters,
}


@pytest.mark.parametrize("name", sampled(ODD, 6))
def test_one_line_changes_and_nothing_else(septet: Septet, tmp_path: Path, name: str) -> None:
    project = repository(tmp_path / "project", CALC)
    ODD[name](project)
    status = git(project, "-c", f"safe.directory={project}", "status", "--short")
    before, mode = (project / "calc.py").read_bytes(), (project / "calc.py").stat()
    done = mend(septet, project)
    assert done.returncode == 0, done.stderr
    assert (project / "calc.py").read_bytes() == before.replace(b"a - b", b"a + b")
    after = (project / "calc.py").stat()
    assert (after.st_mode, after.st_uid) == (mode.st_mode, mode.st_uid)
    lines = {*git(project, "-c", f"safe.directory={project}", "status", "--short").splitlines()}
    assert {line for line in lines - {*status.splitlines()} if not line.endswith("calc.py")} == set()
    assert septet("undo", "c").returncode == 0
    assert (project / "calc.py").read_bytes() == before


def test_a_repository_with_long_ids_is_known_by_its_commit(septet: Septet, tmp_path: Path) -> None:
    project = fill(tmp_path / "project", CALC)
    git(project, "init", "-q", "--object-format=sha256")
    commit(project)
    done = mend(septet, project)
    assert "(git " in done.stderr
    assert "not committed" not in done.stderr
    assert (project / "calc.py").read_text() == MENDED
    septet("undo", "c")
    assert septet("deliver", "c", "--branch", environment=NAMED).returncode == 0
    assert git(project, "show", "septet/c:calc.py") == MENDED


def test_inside_a_hook_of_another_repository_the_folder_counts(septet: Septet, tmp_path: Path) -> None:
    """Git tells its hooks by variables which repository they belong to."""
    project = repository(tmp_path / "project", CALC)
    other = repository(tmp_path / "other", {"other.txt": "x"})
    septet.environment |= {"GIT_DIR": f"{other}/.git", "GIT_INDEX_FILE": f"{other}/.git/index"}
    assert mend(septet, project).returncode == 0
    septet("undo", "c")
    assert "committed to the branch" in septet("deliver", "c", "--branch", environment=NAMED).stderr
    assert git(project, "show", "septet/c:calc.py") == MENDED
    assert "septet" not in git(other, "branch", "-a")


def test_git_that_refuses_a_folder_of_somebody_else_says_so(septet: Septet, tmp_path: Path) -> None:
    project = repository(tmp_path / "mein Ordner ü $HOME", CALC)
    another_owner(project)
    done = mend(septet, project)
    assert done.returncode == 0, done.stderr
    septet("undo", "c")
    refused = septet("deliver", "c", "--branch", environment=NAMED)
    assert "dubious ownership" in refused.stderr
    assert "safe.directory" in refused.stderr


def test_a_branch_runs_no_hook(septet: Septet, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", CALC)
    hook = fill(project, {".git/hooks/reference-transaction": f"#!/bin/sh\ntouch {tmp_path}/ran\n"})
    (hook / ".git/hooks/reference-transaction").chmod(0o755)
    git(project, "config", "core.fsmonitor", ".git/hooks/reference-transaction")
    mend(septet, project)
    septet("undo", "c")
    assert septet("deliver", "c", "--branch", environment=NAMED).returncode == 0
    assert not (tmp_path / "ran").exists()
    assert "delivered: calc.py" in septet("deliver", "c").stderr, (
        "the folder does not have what the branch has"
    )
    assert (project / "calc.py").read_text() == MENDED


def test_a_file_that_cannot_be_written_is_named_and_delivered_later(septet: Septet, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", CALC)
    if subprocess.run(["chattr", "+i", project / "calc.py"], capture_output=True, check=False).returncode:
        pytest.skip("no file can be made unchangeable here")
    try:
        refused = mend(septet, project)
    finally:
        subprocess.run(["chattr", "-i", project / "calc.py"], check=True)
    assert "calc.py cannot be written" in refused.stderr
    assert refused.returncode == 75
    assert septet("deliver", "c").returncode == 0
    assert (project / "calc.py").read_text() == MENDED


def test_git_that_does_not_know_the_person_is_told_about(septet: Septet, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", CALC)
    mend(septet, project)
    septet("undo", "c")
    nobody = {
        "GIT_AUTHOR_EMAIL": "",
        "GIT_COMMITTER_EMAIL": "",
        "GIT_AUTHOR_NAME": "",
        "GIT_COMMITTER_NAME": "",
    }
    refused = septet("deliver", "c", "--branch", environment=nobody)
    assert refused.returncode == 2
    assert "tell git who you are" in refused.stderr
