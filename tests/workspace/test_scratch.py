"""The team's copy holds what the person's folder holds; whatever programs do to it, the folder stays as it is."""

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from septet.domain.files import FileRef, WorkspaceDelta
from septet.workspace.base import look_through
from septet.workspace.delivery import has_marks, merge_file
from septet.workspace.files import MAX_FILE_BYTES, Workspace
from septet.workspace.scratch import Scratch, file_state, files_below


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(
        ["git", *names, *words], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "main.py").write_text("a = 1\nb = 2\nc = 3\nd = 4\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (root / "data.bin").write_bytes(bytes(range(256)))
    (root / "link").symlink_to("run.sh")
    (root / "outside").symlink_to("/etc/hostname")
    (root / ".gitignore").write_text("*.db\n.venv/\nnode_modules/\n*.log\n__pycache__/\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "base")
    (root / "dirty.txt").write_text("not committed\n")
    (root / "small.db").write_text("rows")
    (root / ".env").write_text("K=secret")
    (root / ".venv").mkdir()
    (root / ".venv" / "big").write_text("x")
    (root / "__pycache__").mkdir()
    (root / "__pycache__" / "x.pyc").write_text("x")
    return root


def scratch_of(project: Path, name: str = "one") -> Scratch:
    _, manifest = look_through(project)
    return Scratch(project.parent / "home" / name, project, manifest, name)


@pytest.fixture
def scratch(project: Path) -> Scratch:
    made = scratch_of(project)
    made.copy_base()
    made.rebuild()
    return made


def tree(root: Path) -> dict[str, object]:
    return {
        path: (str((root / path).readlink()), 0)
        if (root / path).is_symlink()
        else ((root / path).read_bytes(), (root / path).stat().st_mode & 0o111)
        for path in files_below(root)
        if not path.startswith(".git/")
    }


def write(scratch: Scratch, files: dict[str, str], *deleted: str) -> WorkspaceDelta:
    from hashlib import sha256

    contents = {path: text.encode() for path, text in files.items()}
    refs = [
        FileRef(path=path, sha256=sha256(one).hexdigest(), size=len(one)) for path, one in contents.items()
    ]
    delta = WorkspaceDelta(files=tuple(refs), deleted=deleted)
    scratch.show(delta, contents)
    return delta


def test_the_copy_is_what_git_lists_and_ignores_without_secrets(project: Path, scratch: Scratch) -> None:
    there = tree(project)
    for gone in (".env", ".venv/big", "__pycache__/x.pyc"):
        there.pop(gone)
    assert tree(scratch.work.root) == there
    assert set(scratch.shared) == {".git", ".venv"}
    assert list((scratch.work.root / ".venv").iterdir()) == []
    base = tree(scratch.base.root)
    assert "small.db" not in base
    assert "dirty.txt" in base


def test_what_programs_do_to_the_base_is_put_right_and_the_folder_never_changes(
    project: Path, scratch: Scratch
) -> None:
    before, work = tree(project), scratch.work.root
    delta = write(
        scratch,
        {"pkg/main.py": "a = 2\n", "new/deep.py": "x = 1\n", "run.sh": "#!/bin/sh\ntrue\n"},
        "dos.txt",
    )
    assert (work / "run.sh").stat().st_mode & 0o111
    assert not (work / "dos.txt").exists()
    stamp = (work / "data.bin").stat()
    (work / "data.bin").write_bytes(bytes(reversed(range(256))))
    os.utime(work / "data.bin", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # a program that hides its change
    (work / "dirty.txt").unlink()
    (work / "link").unlink()
    (work / "link").mkdir()
    (work / "pkg" / "main.py").write_text("changed by a run\n")
    contents = {"pkg/main.py": b"a = 2\n", "new/deep.py": b"x = 1\n", "run.sh": b"#!/bin/sh\ntrue\n"}
    scratch.show(delta, contents)

    assert (work / "data.bin").read_bytes() == bytes(range(256))
    assert (work / "dirty.txt").read_text() == "not committed\n"
    assert (work / "link").readlink() == Path("run.sh")
    assert (work / "pkg" / "main.py").read_text() == "a = 2\n"
    assert tree(project) == before


def test_a_file_of_an_older_version_becomes_the_bases_again(scratch: Scratch) -> None:
    write(scratch, {"pkg/main.py": "a = 2\n", "new.py": "x\n"})
    scratch.show(WorkspaceDelta(leftovers=("new.py", "pkg/main.py")), {})

    assert (scratch.work.root / "pkg" / "main.py").read_text().startswith("a = 1\n")
    assert not (scratch.work.root / "new.py").exists()


def test_a_copy_that_a_crash_left_is_made_anew_and_the_base_is_kept(project: Path, scratch: Scratch) -> None:
    base = tree(scratch.base.root)
    (scratch.work.root / "pkg" / "main.py").unlink()
    (project / "pkg" / "main.py").write_text("edited since\n")
    again = scratch_of(project)
    again.copy_base()
    again.rebuild()

    assert tree(again.base.root) == base
    assert (again.work.root / "pkg" / "main.py").read_text().startswith("a = 1\n")
    (again.home / "complete").unlink()  # a base that was being copied is no base
    again.copy_base()
    assert (again.base.root / "pkg" / "main.py").read_text() == "edited since\n"


def test_edits_are_found_by_content_mode_and_absence(project: Path, scratch: Scratch) -> None:
    assert scratch.edits() == {}
    (project / "pkg" / "main.py").touch()
    assert scratch.edits() == {}
    (project / "pkg" / "main.py").write_text("a = 5\n")
    (project / "dos.txt").unlink()
    (project / "data.bin").chmod(0o755)
    (project / "link").unlink()
    (project / "link").symlink_to("dos.txt")
    (project / "added.txt").write_text("added\n")
    (project / "more.log").write_text("ignored\n")
    (project / "id_rsa").write_text("secret\n")
    (project / "small.db").write_text("other rows")
    edits = scratch.edits()

    assert sorted(edits) == ["added.txt", "data.bin", "dos.txt", "link", "pkg/main.py"]
    assert (edits["dos.txt"].sha256, edits["data.bin"].kind, edits["link"].kind) == ("", "program", "link")
    for one in edits.values():
        scratch.take_over(one)
    assert scratch.edits() == {}
    scratch.show(WorkspaceDelta(), {})
    work = tree(scratch.work.root)
    assert work["added.txt"] == (b"added\n", 0)
    assert "dos.txt" not in work


def test_a_folder_that_no_repository_knows_is_copied_too(tmp_path: Path) -> None:
    project = tmp_path / "plain"
    (project / "node_modules" / "left").mkdir(parents=True)
    (project / "node_modules" / "left" / "index.js").write_text("x")
    (project / "a.txt").write_text("a")
    scratch = scratch_of(project)
    scratch.copy_base()
    scratch.rebuild()

    assert tree(scratch.work.root) == {"a.txt": (b"a", 0)}
    assert scratch.shared == ("node_modules",)


def test_two_chats_have_two_copies(project: Path) -> None:
    one, two = scratch_of(project, "one"), scratch_of(project, "two")
    for each in (one, two):
        each.copy_base()
        each.rebuild()
    write(one, {"pkg/main.py": "one\n"})

    assert Workspace(two.work.root).read("pkg/main.py") == b"a = 1\nb = 2\nc = 3\nd = 4\n"


def test_both_sides_of_a_merge_count_and_what_they_disagree_on_is_marked() -> None:
    base = b"1\n2\n3\n4\n5\n"
    clean = merge_file(base, b"one\n2\n3\n4\n5\n", b"1\n2\n3\n4\nfive\n")
    clash = merge_file(base, b"1\n2\nthree\n4\n5\n", b"1\n2\n3!\n4\n5\n")
    binary = merge_file(b"\0a", b"\0b", b"\0c")

    assert (clean.content, clean.clean) == (b"one\n2\n3\n4\nfive\n", True)
    assert not clash.clean
    assert has_marks(clash.content or b"")
    assert (binary.content, binary.clean) == (None, False)
    assert merge_file(b"a\r\nb\r\n", b"a\r\nb\r\nc\r\n", b"A\r\nb\r\n").content is not None


def test_a_base_is_behind_where_a_file_is_not_as_it_should_be(scratch: Scratch) -> None:
    path = next(path for path in files_below(scratch.base.root) if path.endswith(".py"))
    now = file_state(scratch.base.root, path)
    assert not scratch.is_behind(now)
    assert scratch.is_behind(replace(now, sha256="0" * 64))


def test_a_file_too_large_for_a_version_is_seen_where_it_is(project: Path) -> None:
    with (project / "film.bin").open("wb") as film:
        film.truncate(MAX_FILE_BYTES + 1)
    scratch = scratch_of(project)
    scratch.copy_base()
    scratch.rebuild()
    assert "film.bin" in scratch.shared
    assert "film.bin" in scratch.hidden()
    assert not (scratch.base.root / "film.bin").exists()
    assert (scratch.work.root / "film.bin").stat().st_size == 0, "the place for it to be mounted"
    os.utime(project / "film.bin", (1, 1))
    assert scratch.edits() == {}


def test_a_folder_inside_another_repository_is_not_under_its_rules(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    (top / "sub" / "a.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    (top / ".git" / "info" / "exclude").write_text("*.log\n")
    hidden: dict[str, set[str]] = {}
    for folder in (top, top / "sub"):
        made = Scratch(tmp_path / "home" / folder.name, folder, look_through(folder)[1], folder.name)
        made.copy_base()
        made.rebuild()
        (made.work.root / "made.log").write_text("x")
        hidden[folder.name] = made.hidden()
    assert hidden == {"top": {"made.log"}, "sub": set()}
