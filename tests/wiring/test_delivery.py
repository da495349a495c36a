"""What a chat delivers, how it meets the person's own edits, and how it is taken back; over real repositories."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from scenarios.autocoder.playing import home_in
from scenarios.folders.chats import crew, fill, git, repository

from septet.domain.events import Delivered, VersionWritten
from septet.domain.files import FileRef, tree_of
from septet.errors import BadUsage
from septet.wiring.session import Session, open_session, with_model
from septet.wiring.upkeep import restore_workspace

pytestmark = pytest.mark.anyio
LINES = "".join(f"line {number}\n" for number in range(1, 21))
FILES = {"a.txt": LINES, "b.py": "b = 1\n", "gone.txt": "gone\n", "dos.txt": "one\r\ntwo\r\nthree\r\n"}
CHANGED = {"a.txt": LINES.replace("line 2\n", "LINE 2\n"), "b.py": "b = 2\n", "new/c.py": "c = 1\n"}


async def write_version(session: Session, files: Mapping[str, str | bytes], *deleted: str) -> None:
    state = await session.state("c")
    refs = [
        FileRef(path=path, sha256=await session.blobs.put(content), size=len(content))
        for path, text in sorted(files.items())
        for content in [text if isinstance(text, bytes) else text.encode()]
    ]
    number = len(state.work.versions) + 1
    version = VersionWritten(number=number, files=tuple(refs), tree=tree_of(refs), deleted=deleted)
    await session.store.append("c", version, after=state.seq)


async def begin(session: Session, project: Path) -> None:
    await session.start("do it", with_model(crew("iterate"), "scripted:demo/clock"), project, "c")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = repository(tmp_path / "project", FILES)
    (made / "b.py").chmod(0o755)
    git(made, "add", "-A")
    git(made, "commit", "-qm", "mode")
    return made


def hows(done: Delivered | None) -> dict[str, str]:
    return {one.path: one.how for one in (done.files if done else ())}


async def test_a_delivery_changes_the_files_of_the_version_and_undo_brings_them_back(
    tmp_path: Path, project: Path
) -> None:
    fill(project, {"dirty.txt": "mine\n"})
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, CHANGED, "gone.txt")
        assert git(project, "status", "--porcelain") == "?? dirty.txt\n"
        done = await session.deliver("c")
        assert hows(done) == {
            "a.txt": "written",
            "b.py": "written",
            "gone.txt": "written",
            "new/c.py": "written",
        }
        status = git(project, "status", "--porcelain", "-uall")
        assert status == " M a.txt\n M b.py\n D gone.txt\n?? dirty.txt\n?? new/c.py\n"
        assert (project / "b.py").stat().st_mode & 0o111
        assert await session.deliver("c") is None
        await session.undo("c")
        assert git(project, "status", "--porcelain", "-uall") == "?? dirty.txt\n"
        assert not (project / "new").exists()
        with pytest.raises(BadUsage):
            await session.undo("c")
        assert hows(await session.deliver("c")) == hows(done)


async def test_the_persons_edits_meanwhile_are_merged(tmp_path: Path, project: Path) -> None:
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, {**CHANGED, "dos.txt": "ONE\r\ntwo\r\nthree\r\n"})
        await session.delivery(await session.state("c"))  # the copy is made when the work begins
        mine = LINES.replace("line 18\n", "my line 18\n")
        fill(project, {"a.txt": mine})
        (project / "dos.txt").write_bytes(b"one\r\ntwo\r\nthree\r\nfour\r\n")
        done = await session.deliver("c")
        assert hows(done)["a.txt"] == "merged"
        assert (project / "a.txt").read_text() == mine.replace("line 2\n", "LINE 2\n")
        assert (project / "b.py").read_text() == "b = 2\n"
        clash = done is not None and bool(done.patch)  # three lines are near to each other
        assert clash == (hows(done)["dos.txt"] == "conflict")
        fill(project, {"a.txt": (project / "a.txt").read_text() + "and later\n"})
        undone = await session.undo("c")
        assert hows(undone)["a.txt"] == "merged"
        assert (project / "a.txt").read_text() == mine + "and later\n"


async def test_what_disagrees_stays_the_persons_and_is_in_a_patch(tmp_path: Path, project: Path) -> None:
    binary = bytes(range(256))
    async with open_session(home_in(tmp_path)) as session:
        fill(project, {"pic.bin": "old"})
        (project / "pic.bin").write_bytes(binary)
        await begin(session, project)
        await write_version(
            session, {**CHANGED, "gone.txt": "changed\n", "pic.bin": binary[::-1], "both.txt": "t\n"}
        )
        await session.delivery(await session.state("c"))
        fill(project, {"a.txt": LINES.replace("line 2\n", "my line 2\n"), "both.txt": "mine\n"})
        (project / "gone.txt").unlink()
        (project / "pic.bin").write_bytes(binary + b"mine")
        before = {path: (project / path).read_bytes() for path in ("a.txt", "both.txt", "pic.bin")}
        done = await session.deliver("c")
        assert done is not None
        conflicts = {path for path, how in hows(done).items() if how == "conflict"}
        assert conflicts == {"a.txt", "gone.txt", "pic.bin", "both.txt"}
        assert {path: (project / path).read_bytes() for path in before} == before
        assert not (project / "gone.txt").exists()
        patch = (project / "septet-c.patch").read_text()
        assert done.patch == str(project / "septet-c.patch")
        assert "-line 2\n+LINE 2\n" in patch
        assert "Binary files a/pic.bin" in patch
        patched = git(project, "status", "--porcelain", "-uall")
        assert "?? septet-c.patch\n" in patched
        assert (project / "new" / "c.py").read_text() == "c = 1\n"
        await session.undo("c")
        assert not (project / "septet-c.patch").exists()
        assert {path: (project / path).read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("files", "deleted"),
    [
        ({"gone.txt/c.py": "c = 1\n"}, "gone.txt"),
        ({"dir": "d\n"}, "dir/e.py"),
        ({"GONE.TXT": "g\n"}, "gone.txt"),
    ],
)
async def test_a_file_takes_the_place_of_one_that_goes(
    tmp_path: Path, project: Path, files: Mapping[str, str], deleted: str
) -> None:
    fill(project, {"dir/e.py": "e = 1\n"})
    before = {path.relative_to(project): path.read_bytes() for path in project.rglob("*.*") if path.is_file()}
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, files, deleted)
        done = await session.deliver("c")
        assert hows(done) == dict.fromkeys([deleted, *files], "written")
        assert next(iter(hows(done))) == deleted, "on a disk that knows no case the new file must come last"
        assert {path: (project / path).read_text() for path in files} == files
        await session.undo("c")
    assert {
        one.relative_to(project): one.read_bytes() for one in project.rglob("*.*") if one.is_file()
    } == before


async def test_nothing_is_written_through_links(tmp_path: Path, project: Path) -> None:
    elsewhere = fill(tmp_path / "elsewhere", {"c.py": "precious\n", "d.py": "precious\n"})
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, {"new/c.py": "c = 1\n", "d.py": "d = 1\n"})
        await session.delivery(await session.state("c"))
        (project / "new").symlink_to(elsewhere)
        (project / "d.py").symlink_to(elsewhere / "d.py")
        done = await session.deliver("c")
        assert hows(done) == {"new/c.py": "conflict", "d.py": "conflict"}
        assert [(elsewhere / name).read_text() for name in ("c.py", "d.py")] == ["precious\n"] * 2


async def test_an_undo_takes_back_the_last_delivery_that_changed_something(
    tmp_path: Path, project: Path
) -> None:
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, CHANGED)
        await session.delivery(await session.state("c"))
        mine = LINES.replace("line 2\n", "my line 2\n")
        fill(project, {"a.txt": mine})
        assert hows(await session.deliver("c")) == {
            "a.txt": "conflict",
            "b.py": "written",
            "new/c.py": "written",
        }
        assert hows(await session.deliver("c")) == {"a.txt": "conflict"}
        await session.undo("c")
        assert git(project, "status", "--porcelain", "-uall") == " M a.txt\n"
        assert (project / "a.txt").read_text() == mine
        with pytest.raises(BadUsage):
            await session.undo("c")


async def test_a_branch_gets_the_commit_and_the_checkout_stays(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "t@example.org")
    (project / "b.py").write_text("b = 1  # staged\n")
    git(project, "add", "b.py")
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, CHANGED, "gone.txt")
        head, status = git(project, "rev-parse", "HEAD"), git(project, "status", "--porcelain")
        done = await session.deliver_to_branch("c", "septet/c")
        assert (git(project, "rev-parse", "HEAD"), git(project, "status", "--porcelain")) == (head, status)
        assert git(project, "rev-parse", "septet/c").strip() == done.commit
        changed = git(project, "diff", "--name-status", "HEAD", "septet/c").split()
        assert changed == ["M", "a.txt", "M", "b.py", "D", "gone.txt", "A", "new/c.py"]
        assert git(project, "log", "-1", "--format=%s", "septet/c") == "do it\n"
        assert git(project, "ls-tree", "septet/c", "b.py").startswith("100755")
        with pytest.raises(BadUsage):
            await session.deliver_to_branch("c", "septet/c")
        assert hows(await session.deliver("c"))["a.txt"] == "written"


async def test_an_older_version_comes_back_and_is_delivered(tmp_path: Path, project: Path) -> None:
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, {"b.py": "b = 2\n"})
        await write_version(session, {"b.py": "b = 3\n", "new/c.py": "c = 1\n"}, "gone.txt")
        await session.deliver("c")
        restored = await restore_workspace(session, "c", "v1")
        assert restored.undo == "v2"
        assert git(project, "status", "--porcelain") == " M b.py\n D gone.txt\n?? new/\n"
        await session.deliver("c")
        assert git(project, "status", "--porcelain") == " M b.py\n"
        assert (project / "b.py").read_text() == "b = 2\n"
        with pytest.raises(BadUsage, match="only versions"):
            await restore_workspace(session, "c", "s1")


async def test_two_chats_in_one_folder_deliver_one_after_the_other(tmp_path: Path, project: Path) -> None:
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, {"a.txt": CHANGED["a.txt"]})
        await session.delivery(await session.state("c"))
        fill(project, {"a.txt": LINES.replace("line 15\n", "LINE 15\n")})  # what another chat delivered
        await session.deliver("c")
        both = LINES.replace("line 2\n", "LINE 2\n").replace("line 15\n", "LINE 15\n")
        assert (project / "a.txt").read_text() == both


def lose_copies(session: Session) -> None:
    shutil.rmtree(session.home.scratches)


async def test_a_lost_copy_is_made_anew_of_the_base_and_not_of_the_persons_edits(
    tmp_path: Path, project: Path
) -> None:
    fill(project, {"dirty.txt": LINES})
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, {**CHANGED, "dirty.txt": CHANGED["a.txt"]})
        await session.delivery(await session.state("c"))
        lose_copies(session)
        mine = LINES.replace("line 18\n", "my line 18\n")
        fill(project, {"a.txt": mine, "dirty.txt": mine})
        done = await session.deliver("c")
        assert hows(done) == {
            "a.txt": "merged",
            "b.py": "written",
            "dirty.txt": "merged",
            "new/c.py": "written",
        }
        assert (project / "a.txt").read_text() == mine.replace("line 2\n", "LINE 2\n")
        assert (project / "dirty.txt").read_text() == mine.replace("line 2\n", "LINE 2\n")


async def test_what_nobody_has_of_the_base_any_more_is_not_overwritten(tmp_path: Path, project: Path) -> None:
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, CHANGED)
        await session.delivery(await session.state("c"))
        lose_copies(session)
        shutil.rmtree(project / ".git")
        git(project, "init", "-q")
        mine = LINES.replace("line 18\n", "my line 18\n")
        fill(project, {"a.txt": mine})
        done = await session.deliver("c")
        assert hows(done) == {"a.txt": "conflict", "b.py": "written", "new/c.py": "written"}
        assert (project / "a.txt").read_text() == mine
        assert "+LINE 2\n" in (project / "septet-c.patch").read_text()
        with pytest.raises(BadUsage, match="no commit"):
            await session.deliver_to_branch("c", "septet/c")


async def test_links_modes_and_bytes_stay_what_they_were(tmp_path: Path, project: Path) -> None:
    crlf = LINES.replace("\n", "\r\n").encode()
    latin = "".join(f"Käse {number}\n" for number in range(20)).encode("latin-1")
    (project / "dos.txt").write_bytes(crlf)
    (project / "latin.txt").write_bytes(latin)
    (project / "logo.bin").write_bytes(b"\0\1\r\n\xff")
    (project / "link").symlink_to("a.txt")
    (project / os.fsdecode(b"k\xe4se.txt")).write_bytes(b"odd name\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "more")
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        team = {
            "dos.txt": crlf.replace(b"line 2\r", b"LINE 2\r"),
            "latin.txt": latin.replace(b" 2\n", b" II\n"),
            "logo.bin": b"\0\2\r\n\xfe",
        }
        await write_version(session, {"a.txt": CHANGED["a.txt"], **team}, "link")
        await session.delivery(await session.state("c"))
        (project / "dos.txt").write_bytes(crlf + b"mine\r\n")
        (project / "latin.txt").write_bytes(latin + "Mäh\n".encode("latin-1"))
        (project / "a.txt").chmod(0o755)
        done = await session.deliver("c")
        assert done is not None
        assert not done.patch
        assert (project / "dos.txt").read_bytes() == team["dos.txt"] + b"mine\r\n"
        assert (project / "latin.txt").read_bytes() == team["latin.txt"] + "Mäh\n".encode("latin-1")
        assert (project / "logo.bin").read_bytes() == team["logo.bin"]
        assert (project / "a.txt").stat().st_mode & 0o777 == 0o755
        assert not (project / "link").is_symlink()
        assert git(project, "status", "--porcelain", "-z").count("\0") == 5
        await session.undo("c")
        assert (project / "logo.bin").read_bytes() == b"\0\1\r\n\xff"
        assert (project / "link").readlink() == Path("a.txt")
        assert (project / "a.txt").read_text() == LINES
        assert (project / "latin.txt").read_bytes() == latin + "Mäh\n".encode("latin-1")


async def test_a_file_of_the_persons_with_the_name_of_the_patch_is_kept(
    tmp_path: Path, project: Path
) -> None:
    fill(project, {"septet-c.patch": "mine\n"})
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, CHANGED)
        await session.delivery(await session.state("c"))
        fill(project, {"a.txt": LINES.replace("line 2\n", "my line 2\n")})
        done = await session.deliver("c")
        assert done is not None
        assert done.patch == str(project / "septet-c-2.patch")
        await session.undo("c")
        assert not (project / "septet-c-2.patch").exists()
        assert (project / "septet-c.patch").read_text() == "mine\n"


async def test_what_the_log_does_not_hold_is_no_hindrance_to_an_undo(tmp_path: Path, project: Path) -> None:
    """The content of a link or a secret that a conflict left alone is stored nowhere."""
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, {**CHANGED, "dos.txt": "x\n"})
        await session.delivery(await session.state("c"))
        (project / "a.txt").unlink()
        (project / "a.txt").symlink_to("gone.txt")
        fill(project, {"dos.txt": "AKIAIOSFODNN7EXAMPLE\n"})
        assert hows(await session.deliver("c")) == {
            "a.txt": "conflict",
            "b.py": "written",
            "dos.txt": "conflict",
            "new/c.py": "written",
        }
        await session.undo("c")
        assert git(project, "status", "--porcelain", "-uall") == " T a.txt\n M dos.txt\n"


async def test_a_folder_that_was_moved_is_named_and_nothing_is_begun(tmp_path: Path, project: Path) -> None:
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, CHANGED)
        await session.delivery(await session.state("c"))
        project.rename(tmp_path / "moved")
        for act in (session.deliver("c"), session.deliver_to_branch("c", "b")):
            with pytest.raises(BadUsage, match="is not there any more"):
                await act
        (tmp_path / "moved").rename(project)
        assert set(hows(await session.deliver("c")).values()) == {"written"}
        assert not (project / "septet-c.patch").exists()


async def test_repositories_within_are_left_alone(tmp_path: Path, project: Path) -> None:
    other = repository(tmp_path / "other", {"x.py": "x = 1\n"})
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    git(project, "commit", "-qm", "sub")
    repository(project / "nested", {"y.py": "y = 1\n"})
    before = git(project, "status", "--porcelain")
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, {"b.py": "b = 2\n", "sub/x.py": "x = 2\n", "nested/y.py": "y = 2\n"})
        await session.delivery(await session.state("c"))
        done = await session.deliver("c")
        assert hows(done) == {"b.py": "written", "nested/y.py": "conflict", "sub/x.py": "conflict"}
        (project / "septet-c.patch").unlink()
        assert git(project, "status", "--porcelain") == " M b.py\n" + before
        assert git(project / "sub", "status", "--porcelain") == ""
        assert git(project / "nested", "status", "--porcelain") == ""


async def test_a_worktree_gets_its_own_delivery(tmp_path: Path, project: Path) -> None:
    tree = tmp_path / "tree"
    git(project, "worktree", "add", "-q", "-b", "other", str(tree))
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, tree)
        await write_version(session, CHANGED, "gone.txt")
        await session.deliver("c")
        assert git(tree, "status", "--porcelain") == " M a.txt\n M b.py\n D gone.txt\n?? new/\n"
        assert git(project, "status", "--porcelain") == ""
        await session.undo("c")
        assert git(tree, "status", "--porcelain") == ""


async def test_a_folder_without_git_is_delivered_to_and_merged(tmp_path: Path) -> None:
    project = fill(tmp_path / "plain", FILES)
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, CHANGED, "gone.txt")
        await session.delivery(await session.state("c"))
        lose_copies(session)
        mine = LINES.replace("line 18\n", "my line 18\n")
        fill(project, {"a.txt": mine})
        assert hows(await session.deliver("c"))["a.txt"] == "merged"
        assert (project / "a.txt").read_text() == mine.replace("line 2\n", "LINE 2\n")
        with pytest.raises(BadUsage, match="no commit"):
            await session.deliver_to_branch("c", "septet/c")
        await session.undo("c")
        assert {path: (project / path).read_bytes().decode() for path in FILES} == {**FILES, "a.txt": mine}


async def test_an_undo_leaves_what_was_changed_in_the_same_lines(tmp_path: Path, project: Path) -> None:
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, CHANGED, "gone.txt")
        await session.deliver("c")
        fill(project, {"a.txt": LINES.replace("line 2\n", "my own line 2\n"), "gone.txt": "mine again\n"})
        undone = await session.undo("c")
        assert hows(undone) == {
            "a.txt": "conflict",
            "b.py": "written",
            "gone.txt": "conflict",
            "new/c.py": "written",
        }
        assert (project / "a.txt").read_text() == LINES.replace("line 2\n", "my own line 2\n")
        assert (project / "gone.txt").read_text() == "mine again\n"
        assert (project / "b.py").read_text() == "b = 1\n"


DELIVER = """
import sys
import anyio
from pathlib import Path
from septet.errors import SeptetError
from septet.settings.home import Home
from septet.wiring.session import open_session

async def main():
    root = Path(sys.argv[1])
    async with open_session(Home(data=root, config=root / "config", cache=root / "cache")) as session:
        try:
            await session.deliver("c")
        except SeptetError as error:
            print(error.cause)

anyio.run(main)
"""


def deliver_read_only(project: Path, home: Path) -> subprocess.CompletedProcess[str]:
    view = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(project), str(project)]
    command = [*view, sys.executable, "-c", DELIVER, str(home)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="nothing here makes a folder read-only for root too"
)
async def test_a_folder_that_cannot_be_written_is_said_and_delivered_to_later(
    tmp_path: Path, project: Path
) -> None:
    home = home_in(tmp_path)
    async with open_session(home) as session:
        await begin(session, project)
        await write_version(session, CHANGED, "gone.txt")
    tried = deliver_read_only(project, home.data)
    assert f"{project} is not writable" in tried.stdout, tried.stderr
    assert git(project, "status", "--porcelain") == ""
    async with open_session(home) as session:
        assert set(hows(await session.deliver("c")).values()) == {"written"}
        assert git(project, "status", "--porcelain") == " M a.txt\n M b.py\n D gone.txt\n?? new/\n"


KILLED = """
import os, signal, sys
import anyio
from pathlib import Path
from septet.settings.home import Home
from septet.wiring import delivery
from septet.wiring.session import open_session

step, root = int(sys.argv[1]), Path(sys.argv[2])
count = 0

def here():
    global count
    if count == step:
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1

real = delivery.hand_over
def hand_over(*given):
    here()
    done = real(*given)
    here()
    return done
delivery.hand_over = hand_over

async def main():
    async with open_session(Home(data=root, config=root / "config", cache=root / "cache")) as session:
        append = session.store.append
        async def appending(*given, **named):
            here()
            stored = await append(*given, **named)
            here()
            return stored
        session.store.append = appending
        await session.deliver("c")
        here()

anyio.run(main)
"""


def deliver_killed_at(step: int, home: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(step), str(home)], check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL


@pytest.mark.parametrize("step", range(13))
async def test_a_delivery_that_was_killed_goes_on(tmp_path: Path, project: Path, step: int) -> None:
    """Two stores of an event and four files, each with a moment before and after it, and the end."""
    home = home_in(tmp_path)
    mine = LINES.replace("line 18\n", "my line 18\n")
    async with open_session(home) as session:
        await begin(session, project)
        await write_version(session, CHANGED, "gone.txt")
        await session.delivery(await session.state("c"))
    fill(project, {"a.txt": mine})
    deliver_killed_at(step, home.data)
    texts = {"a.txt": mine.replace("line 2\n", "LINE 2\n"), "b.py": "b = 2\n", "new/c.py": "c = 1\n"}
    before = {**FILES, "a.txt": mine}
    for path, after in texts.items():
        now = (project / path).read_text() if (project / path).exists() else None
        assert now in (before.get(path), after)
    async with open_session(home) as session:
        await session.deliver("c")
        assert {path: (project / path).read_text() for path in texts} == texts
        assert not (project / "gone.txt").exists()
        assert list(project.rglob("*.septet")) == []
        state = await session.state("c")
        assert state.base is not None
        assert len(state.base.deliveries) == 1
        await session.undo("c")
        assert (project / "a.txt").read_text() == mine
        assert (project / "b.py").read_text() == "b = 1\n"
        assert (project / "gone.txt").exists()
