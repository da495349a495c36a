"""A repository that only the conductor's machine has, worked on by members on other machines."""

import os
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from cluster.test_commands import environment, serving
from scenarios.folders.chats import ACCEPT, Turn, code, crew, git, plan, repository, script

from septet.cluster.server import NatsServer
from septet.domain.events import Delivered, Event, RunFinished, VersionWritten
from septet.wiring.cluster import Membership, open_cluster, serve_roles
from septet.wiring.session import Session, with_model

pytestmark = pytest.mark.anyio
BUG = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a * 2\n"
MENDED = BUG.replace("a - b", "a + b")
FILES = {
    "src/calc/__init__.py": BUG,
    "tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
    "tests/test_mode.py": (
        "import os\n\n\ndef test_mode():\n"
        "    assert os.access('tool.sh', os.X_OK) and os.readlink('link.sh') == 'tool.sh'\n"
        "    assert not os.path.exists('.env') and not os.path.exists('local.db')\n"
    ),
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['src']\n",
    ".gitignore": "__pycache__/\n.pytest_cache/\n*.db\n",
    ".env": "PASSWORD=hunter2hunter2\n",
    "local.db": "private\n",
    "tool.sh": "#!/bin/sh\n",
}
ROLES = {"there": ("planner", "coder", "reviewer"), "elsewhere": ("runner",)}
NAMED = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "n"), ("EMAIL", "n@example.org"))
}
MENDS = plan("", "mends tests/test_calc.py::test_add", "command grep -q 'a + b' src/calc/__init__.py")
TURNS = (MENDS, code({"src/calc/__init__.py": MENDED}), code({"src/calc/__init__.py": MENDED}), ACCEPT)


def make_repository(folder: Path) -> Path:
    project = repository(folder, FILES)
    (project / "tool.sh").chmod(0o755)
    (project / "link.sh").symlink_to("tool.sh")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "a tool")
    return project


@asynccontextmanager
async def cluster(
    server: NatsServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Session]:
    """The conductor's session; two members with homes of their own serve all roles, one of them runs programs."""
    async with anyio.create_task_group() as tasks:
        for name, roles in ROLES.items():
            monkeypatch.setenv("SEPTET_HOME", str(folder / name))
            ready = anyio.Event()
            joined = Membership(endpoint=server.endpoint, roles=roles, name=name)
            tasks.start_soon(serve_roles, joined, ready.set)
            await ready.wait()
        monkeypatch.setenv("SEPTET_HOME", str(folder / "here"))
        async with open_cluster(server.endpoint) as session:
            yield session
        tasks.cancel_scope.cancel()


async def conduct(session: Session, meanwhile: Callable[[Event], None] = lambda _: None) -> list[Event]:
    events: list[Event] = []
    async with aclosing(session.perform("c", await session.sandbox())) as performance:
        async for recorded in performance:
            events.append(recorded.event)
            meanwhile(recorded.event)
    return events


async def start(session: Session, folder: Path, project: Path, *more: Turn) -> None:
    model = script(folder, *TURNS, *more)
    await session.start("mend add", with_model(crew("iterate"), model), project, "c")


async def test_members_without_the_repository_mend_it(
    server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, away = make_repository(tmp_path / "project"), tmp_path / "away"
    async with cluster(server, tmp_path, monkeypatch) as session:
        await start(session, tmp_path, project)
        project.rename(away)  # nobody has it now: what members see came through the shared blobs
        events = await conduct(session)
        away.rename(project)
        state = await session.state("c")
        assert state.ended is not None
        assert state.ended.reason == "done"
        await session.deliver("c")

    runs = {event.purpose: event.result for event in events if isinstance(event, RunFinished)}
    assert runs["baseline"].report.counts == "1 failed, 1 passed"
    assert runs["tests"].report.counts == "2 passed"
    (version,) = [event for event in events if isinstance(event, VersionWritten)]
    assert [file.path for file in version.files] == ["src/calc/__init__.py"]
    assert git(project, "status", "--porcelain", "-uall") == " M src/calc/__init__.py\n"
    assert (project / "src/calc/__init__.py").read_text() == MENDED
    assert os.access(project / "tool.sh", os.X_OK)


async def test_what_the_person_edits_meanwhile_is_checked_by_the_members_and_kept(
    server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_repository(tmp_path / "project")
    module = project / "src/calc/__init__.py"
    mine = "\n\ndef triple(a):\n    return a * 3\n"

    def edit(event: Event) -> None:
        if isinstance(event, VersionWritten) and not event.found:
            assert module.read_text() == BUG  # the folder is written at delivery
            module.write_text(BUG + mine)

    async with cluster(server, tmp_path, monkeypatch) as session:
        await start(session, tmp_path, project, ACCEPT)
        events = await conduct(session, edit)

    found = next(event for event in events if isinstance(event, VersionWritten) and event.found)
    runs = [event for event in events if isinstance(event, RunFinished) and event.tree == found.tree]
    assert [run.result.report.counts for run in runs if run.purpose == "tests"] == ["2 passed"]
    (done,) = [event for event in events if isinstance(event, Delivered)]
    assert done.unproven == ()
    assert module.read_text() == MENDED + mine


def run_in(project: Path, home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "septet", *words],
        cwd=project,
        env={**environment(home), **NAMED},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_chat_on_a_server_is_seen_tried_delivered_and_taken_back_from_here(tmp_path: Path) -> None:
    project, here = make_repository(tmp_path / "project"), tmp_path / "here"
    git(project, "rm", "-q", "tests/test_mode.py")
    git(project, "commit", "-qm", "what members do not have is here")
    model = script(tmp_path, *TURNS)
    with serving(tmp_path / "there", "up", "--port", "0", "--no-web") as there:
        token = ("--token-file", str(tmp_path / "there" / "host" / "token"))
        waits = run_in(project, here, "conduct", there.url, "mend add", "-C", ".", "-m", model, *token)
        assert waits.returncode == 4, waits.stderr
        assert "works on" in waits.stderr
        answer = shlex.split(waits.stderr.rpartition("answer with: septet ")[2])
        done = run_in(project, here, *answer)
        assert done.returncode == 4, done.stderr
        chat = done.stderr.partition("septet deliver ")[2].split()[0]
        assert git(project, "status", "--porcelain") == ""
        assert "+    return a + b" in run_in(project, here, "diff", chat).stdout
        tried = run_in(project, here, "try", chat, "--", "grep", "return", "src/calc/__init__.py")
        assert tried.stdout.splitlines()[0] == "    return a + b"
        (project / "src/calc/__init__.py").write_text(BUG + "\n\n# mine\n")
        delivered = run_in(project, here, "deliver", chat)
        assert delivered.returncode == 0, delivered.stderr
        assert (project / "src/calc/__init__.py").read_text() == MENDED + "\n\n# mine\n"
        assert run_in(project, here, "undo", chat).returncode == 0
        assert (project / "src/calc/__init__.py").read_text() == BUG + "\n\n# mine\n"
        branched = run_in(project, here, "deliver", chat, "--branch")
        assert f"committed to the branch septet/{chat}" in branched.stderr
