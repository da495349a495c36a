"""What is ignored by git or looks like a secret is neither told to a model nor stored."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from cli.commands import Septet
from scenarios.folders.chats import ACCEPT, call, fill, git, plan, play, repository, script, send, undo

from septet.domain.events import BaseSurveyed, RunFinished

pytestmark = pytest.mark.anyio
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nQ0FOQVJZ\n-----END OPENSSH PRIVATE KEY-----\n"
SECRETS = {
    ".env": "PASSWORD=CANARY-1\n",
    ".env.local": "PASSWORD=CANARY-2\n",
    "certs/server.pem": "CANARY-3\n",
    "deploy.key": "CANARY-4\n",
    "id_rsa": "CANARY-5\n",
    ".netrc": "machine x login y password CANARY-6\n",
    "credentials.json": '{"k": "CANARY-7"}\n',
    "notes.txt": f"CANARY-8\n{KEY}",
    "settings.py": "TOKEN = 'ghp_CANARY9abcdefghijklmnopqrstuvwx'\n",
}
IGNORED = {"private/diary.txt": "CANARY-10\n", "dev.db": "CANARY-11\n", "kept.log": "CANARY-12\n"}
OPEN = {"main.py": "print('hi')\n", ".env.example": "PASSWORD=fill me in\n", "tracked.log": "visible-log\n"}
RULES = {".gitignore": "private/\n*.db\n*.log\n"}
PLAN = plan("python main.py", "command python main.py => ho")
EDIT = call("edit_text", {"path": "main.py", "old": "'hi'", "new": "'ho'"})


def project_with_secrets(folder: Path, *, in_git: bool) -> Path:
    if not in_git:
        return fill(folder, {**SECRETS, **OPEN})
    fill(folder, {**IGNORED, **SECRETS, **OPEN, **RULES})
    git(folder, "init", "-q")
    git(folder, "add", "main.py", ".gitignore", ".env.example")
    git(folder, "add", "-f", "tracked.log")
    git(folder, "commit", "-qm", "base")
    return folder


def stored(home: Path) -> bytes:
    """All but the copy that programs work in, which has what git ignores."""
    files = [path for path in home.rglob("*") if path.is_file() and home / "scratch" not in path.parents]
    return b"".join(path.read_bytes() for path in files)


def texts(folder: Path) -> Mapping[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


@pytest.mark.parametrize("in_git", [True, False])
async def test_no_secret_is_told_or_stored(tmp_path: Path, in_git: bool) -> None:
    project = project_with_secrets(tmp_path / "project", in_git=in_git)
    played = await play(tmp_path, script(tmp_path, PLAN, EDIT, ACCEPT), "autocoder", rounds=1)
    assert "fill me in" in played.told
    assert "visible-log" in played.told  # tracked, so git does not ignore it
    assert "CANARY" not in played.told
    assert b"CANARY" not in stored(tmp_path / "home")
    copy = tmp_path / "home" / "scratch" / "c" / "work"
    assert sorted(texts(copy)) == sorted([*OPEN, *([*IGNORED, *RULES] if in_git else ())])
    (base,) = [event for event in played.events if isinstance(event, BaseSurveyed)]
    assert base.files == len(OPEN) + (1 if in_git else 0)
    assert base.ignored == (len(IGNORED) if in_git else 0)
    assert sorted(base.secrets) == sorted(SECRETS)
    before = texts(project)
    await undo(tmp_path)
    after = texts(project)
    assert after["main.py"] == "print('hi')\n"
    for path in [*SECRETS, *(IGNORED if in_git else ())]:
        assert after[path] == before[path]
    assert b"CANARY" not in stored(tmp_path / "home")


def test_it_is_said_what_is_read(septet: Septet, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {".gitignore": "*.db\n", "main.py": "print('hi')\n"})
    fill(project, {"a.db": "x", "b.db": "x", ".env": "x"})
    model = script(tmp_path, PLAN, EDIT, ACCEPT)
    done = septet("run", "g", "-t", "autocoder", "-C", "project", "--yes", "-m", model, "--rounds", "1")
    said = f"works on 2 files of {project} (git"
    assert done.stderr.count(said) == 1, done.stderr
    assert "; leaves out 2 ignored, 1 that looks like a secret (.env)" in done.stderr


async def test_a_secret_that_a_run_touches_is_not_stored(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {".gitignore": "*.db\n", "main.py": "print('hi')\n"})
    fill(project, {".env": "CANARY-1\n", "dev.db": "CANARY-2\n"})
    program = "for n in ('.env', 'dev.db'):\n    open(n, 'a').write('x')\nprint('ho')\n"
    act = call("write_code", {"path": "main.py", "code": program})
    await play(tmp_path, script(tmp_path, PLAN, act, ACCEPT), "autocoder", rounds=1)
    assert b"CANARY" not in stored(tmp_path / "home")
    assert (project / "dev.db").read_text() == "CANARY-2\n"
    assert (project / ".env").read_text() == "CANARY-1\n"


async def test_the_assistant_cannot_read_them_either(tmp_path: Path) -> None:
    project = project_with_secrets(tmp_path / "project", in_git=True)
    reads = [
        call("File", {"file_name": name, **edit}, role="assistant")
        for name in [".env", "dev.db", "settings.py"]
        for edit in ({}, {"body": "x"}, {"old": "CANARY", "new": "x"})
    ]
    model = script(
        tmp_path, send("go"), *reads, {"role": "assistant", "say": "no"}, {"role": "proxy", "say": "No."}
    )
    before = texts(project)
    played = await play(tmp_path, model, "assistant")
    assert len(played.refusals) == len(reads)
    assert "CANARY" not in played.told.replace('"old":"CANARY"', "")
    assert texts(project) == before


async def test_rules_of_a_repository_that_a_program_made_run_nothing(tmp_path: Path) -> None:
    """A program may make a .git of its own: nothing in its configuration is carried out."""
    project = fill(tmp_path / "project", {"main.py": "print('hi')\n"})
    pwned = tmp_path / "pwned"
    config = f"[core]\n\tfsmonitor = touch {pwned}\n\trepositoryformatversion = 0\n"
    git(project, "init", "-q")
    fill(project, {".git/config": config})
    os.utime(project / ".git" / "config")
    played = await play(tmp_path, script(tmp_path, PLAN, EDIT, ACCEPT), "autocoder", rounds=1)
    assert any(isinstance(event, RunFinished) for event in played.events)
    assert not pwned.exists()
