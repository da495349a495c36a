"""A delivery, an undo and a branch, killed before every single change of a file and every program that they start."""

import signal
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from scenarios.autocoder.playing import home_in
from scenarios.folders.chats import fill, git, repository
from wiring.test_delivery import CHANGED, FILES, LINES, begin, write_version

from septet.errors import BadUsage
from septet.wiring.session import Session, open_session

pytestmark = pytest.mark.anyio
BRANCH_STEPS = (8, 46)
"""In the middle, and after the branch was made."""
MINE = LINES.replace("line 18\n", "my line 18\n")
CLASH = "my own b\n"
BEFORE = {**FILES, "a.txt": MINE, "b.py": CLASH}
AFTER = {
    "a.txt": MINE.replace("line 2\n", "LINE 2\n"),
    "b.py": CLASH,
    "new/c.py": "c = 1\n",
    "gone.txt": None,
}
"""Of the delivery: one file is merged, one is in a patch, one is new, one goes."""
KILLED = """
import os, signal, sys
import anyio
from pathlib import Path
from septet.settings.home import Home
from septet.errors import BadUsage
from septet.wiring.session import open_session

act, step, root = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
count, on = 0, False
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "os.symlink", "subprocess.Popen"}

def here(name, given):
    global count
    if not on or name not in CHANGES and not (name == "open" and isinstance(given[2], int) and given[2] & 3):
        return
    if count == step:
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1

sys.addaudithook(here)

async def main():
    global on
    async with open_session(Home(data=root, config=root / "config", cache=root / "cache")) as session:
        append = session.store.append
        async def appending(*given, **named):
            here("os.rename", ())
            stored = await append(*given, **named)
            here("os.rename", ())
            return stored
        session.store.append = appending
        on = True
        if act == "branch":
            await session.deliver_to_branch("c", "septet/c")
        else:
            await (session.undo("c") if act == "undo" else session.deliver("c"))
        on = False
    print(count)

anyio.run(main)
"""


def act_killed_at(act: str, step: int, home: Path) -> str:
    """What the process printed: the number of steps, where there are fewer; nothing where it was killed."""
    command = [sys.executable, "-c", KILLED, act, str(step), str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.stdout.strip()


async def prepare(session: Session, project: Path, act: str) -> None:
    """A work that is ready to be delivered, after edits of the person; or delivered, with an edit after it."""
    await begin(session, project)
    await write_version(session, CHANGED, "gone.txt")
    await session.delivery(await session.state("c"))
    fill(project, {"a.txt": MINE, "b.py": CLASH})
    if act == "undo":
        await session.deliver("c")


def texts(project: Path) -> dict[str, str | None]:
    return {path: (project / path).read_text() if (project / path).exists() else None for path in AFTER}


async def again(session: Session, act: str) -> None:
    """The person says the same once more; what is undone altogether cannot be undone again."""
    if act == "undo":
        with suppress(BadUsage):
            await session.undo("c")
    else:
        await session.deliver("c")


async def check_steps(folder: Path, act: str) -> int:
    for step in count():
        root = folder / str(step)
        project, home = repository(root / "project", FILES), home_in(root)
        async with open_session(home) as session:
            await prepare(session, project, act)
        if printed := act_killed_at(act, step, home.data):
            return int(printed)
        states = [{path: BEFORE.get(path) for path in AFTER}, AFTER]
        assert all(now in (states[0][path], states[1][path]) for path, now in texts(project).items()), step
        async with open_session(home) as session:
            await again(session, act)
            assert texts(project) == states[act != "undo"], f"killed before step {step}"
            extra = [] if act == "undo" else ["new/c.py", "septet-c.patch"]
            new = git(project, "ls-files", "-o", "--exclude-standard").split()
            assert new == extra, f"killed before step {step}"
            state = await session.state("c")
            assert state.base is not None
            writing = [
                done for done in state.base.deliveries if {one.how for one in done.files} != {"conflict"}
            ]
            assert len(writing) == (2 if act == "undo" else 1), f"killed before step {step}"
            if act != "undo":
                await session.undo("c")  # also what is in conflict and was delivered once more
                assert texts(project) == states[0], f"killed before step {step}"
    raise AssertionError("it never ends")


async def check_branch(root: Path, step: int) -> bool:
    """Whether there is such a step; the branch is made in any case, and the checkout stays as it is."""
    project, home = repository(root / "project", FILES), home_in(root)
    async with open_session(home) as session:
        await begin(session, project)
        await write_version(session, CHANGED, "gone.txt")
        await session.delivery(await session.state("c"))
    status = git(project, "status", "--porcelain", "-uall")
    printed = act_killed_at("branch", step, home.data)
    async with open_session(home) as session:
        known = await session.state("c")
        if known.base is not None and not known.base.deliveries:
            await session.deliver_to_branch("c", "septet/c")
        state = await session.state("c")
        assert state.base is not None
        (done,) = state.base.deliveries
        with pytest.raises(BadUsage):
            await session.deliver_to_branch("c", "septet/c")
    assert git(project, "rev-parse", "septet/c").strip() == done.commit
    changed = git(project, "diff", "--name-status", "HEAD", "septet/c").split()
    assert changed == ["M", "a.txt", "M", "b.py", "D", "gone.txt", "A", "new/c.py"], f"before step {step}"
    assert git(project, "status", "--porcelain", "-uall") == status
    assert not list((project / ".git").rglob("*.lock")), f"before step {step}"
    return not printed


@pytest.fixture
def _author(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "t@example.org")


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("_author")
async def test_a_branch_is_made_wherever_it_was_killed(tmp_path: Path) -> None:
    steps = count()
    while await check_branch(tmp_path / str(step := next(steps)), step):
        pass
    assert step > 10


@pytest.mark.usefixtures("_author")
@pytest.mark.parametrize("step", BRANCH_STEPS)
async def test_a_branch_that_was_killed_is_made_by_the_next_delivery(tmp_path: Path, step: int) -> None:
    assert await check_branch(tmp_path, step)


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("act", ["deliver", "undo"])
async def test_it_goes_on_wherever_it_was_killed(tmp_path: Path, act: str) -> None:
    assert await check_steps(tmp_path, act) > 10


async def test_an_undo_that_was_killed_is_finished_by_the_next_one_which_undoes_no_more(
    tmp_path: Path,
) -> None:
    project, home = repository(tmp_path / "project", FILES), home_in(tmp_path)
    async with open_session(home) as session:
        await begin(session, project)
        await write_version(session, {"b.py": "b = 2\n"})
        await session.deliver("c")
        await write_version(session, {"b.py": "b = 3\n", "a.txt": "3\n"})
        await session.deliver("c")
    assert act_killed_at("undo", 8, home.data) == ""
    async with open_session(home) as session:
        state = await session.state("c")
        assert state.base is not None
        assert state.base.delivery is not None, "it was killed in the middle"
        undone = await session.undo("c")
        assert (undone.number, undone.undoes) == (3, 2)
        assert (project / "b.py").read_text() == "b = 2\n"
        assert (project / "a.txt").read_text() == LINES
