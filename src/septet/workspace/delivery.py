"""Delivery into the person's folder or onto a branch, file by file, merged where both sides changed."""

import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from septet.common.temporary import temporary_folder
from septet.common.values import Value
from septet.domain.base import DeliveredFile, FileState
from septet.errors import BadUsage, StoreFailed
from septet.workspace.edits import diff_text
from septet.workspace.files import MAX_FILE_BYTES, Workspace, make_folder, path_and_parents
from septet.workspace.git import PLAIN, git_surroundings
from septet.workspace.listing import is_secret
from septet.workspace.scratch import content_of, file_state, files_below, put_state

MARKS = (b"<<<<<<< the folder", b">>>>>>> the team")
PATIENCE = 20.0


class Merge(Value):
    """The result of a merge; `content` is None if the contents cannot be merged by lines, or git is missing."""

    content: bytes | None
    clean: bool


def merge_file(base: bytes, folder: bytes, team: bytes) -> Merge:
    """Merge the team's and the folder's changes to `base`."""
    if folder in (base, team):
        return Merge(content=team, clean=True)
    if team == base:
        return Merge(content=folder, clean=True)
    program = shutil.which("git")
    if program is None or any(b"\0" in content for content in (base, folder, team)):
        return Merge(content=None, clean=False)
    with temporary_folder("merge") as made:
        for name, content in (("folder", folder), ("base", base), ("team", team)):
            (made / name).write_bytes(content)
        labels = ("-L", "the folder", "-L", "before", "-L", "the team")
        run = subprocess.run(
            [program, "merge-file", "-p", *labels, "folder", "base", "team"],
            cwd=made,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    if not 0 <= run.returncode < 128:
        return Merge(content=None, clean=False)
    return Merge(content=run.stdout, clean=run.returncode == 0)


def has_marks(content: bytes) -> bool:
    """Whether the content has conflict markers."""
    return all(mark in content for mark in MARKS)


MODES = {"file": "100644", "program": "100755", "link": "120000"}
NOTHING = ""
"""The old value that git's update-ref needs to create a new branch."""

REMEDIES = {
    "commit-tree": "tell git who you are: git config user.name NAME; git config user.email ADDRESS",
    "rev-parse": "if you trust it: git config --global --add safe.directory FOLDER",
    "hash-object": "check the repository's filters (.gitattributes) and the disk",
}
"""By the git command that failed."""

Files = Mapping[str, tuple[FileState, bytes]]


def commit_to_branch(
    top: Path, name: str, parent: str, message: str, files: Files, known: Collection[str] = ()
) -> str:
    """Commit these files on top of the parent's; a state without a sha256 deletes the file.

    A branch with this very commit was made by a delivery that was killed, unless the commit is `known`.
    """
    with temporary_folder("index") as made:
        git = BranchGit(top, made / "index", name)
        git("rev-parse", "--git-dir")
        if git.run("cat-file", "-e", f"{parent}^{{commit}}").returncode:
            cause = (
                f"the commit {parent[:12]} that the work began on is gone: there is no commit to branch from"
            )
            raise BadUsage(cause, "deliver without --branch")
        git("check-ref-format", "--branch", name)
        git("read-tree", parent)
        for path, (state, content) in files.items():
            if state.sha256:
                oid = git("hash-object", "-w", "--stdin", "--path", path, given=content)
                git("update-index", "--add", "--cacheinfo", f"{MODES[state.kind]},{oid},{path}")
            else:
                git("update-index", "--force-remove", path)
        tree = git("write-tree")
        shown = git.run("show", "-s", "--format=%H%n%T %P%n%B", f"refs/heads/{name}").stdout.decode()
        there, _, contents = shown.partition("\n")
        if there not in known and contents.strip() == f"{tree} {parent}\n{message}".strip():
            return there
        commit = git("commit-tree", tree, "-p", parent, given=message.encode())
        git("update-ref", f"refs/heads/{name}", commit, NOTHING)
        return commit


class BranchGit:
    """Runs git in the person's repository with a temporary index."""

    def __init__(self, top: Path, index: Path, branch: str) -> None:
        self.top = top
        self.branch = branch
        self.surroundings = {**git_surroundings(), "GIT_INDEX_FILE": str(index)}

    def run(self, *words: str, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [
                "git",
                *PLAIN,
                "-c",
                "core.hooksPath=/dev/null",
                *words,
            ],  # nobody expects hooks where nothing is checked out
            cwd=self.top,
            env=self.surroundings,
            input=given,
            capture_output=True,
            check=False,
        )

    def __call__(self, *words: str, given: bytes = b"") -> str:
        run = self.run(*words, given=given)
        if run.returncode:
            lines = run.stderr.decode(errors="replace").strip().splitlines() or [""]
            said = next((line for line in lines if line.startswith("fatal: ")), lines[-1])
            remedy = REMEDIES.get(words[0], "name another branch")
            raise BadUsage(f"git could not commit to the branch '{self.branch}' ({said})", remedy)
        return run.stdout.decode().strip()


Contents = dict[str, bytes]
"""By their sha256."""


class PlannedChange(Value):
    """The planned state of a file, and its state in the base.

    `base_after` is the base's new state, if it differs from `after`.
    """

    base: FileState
    after: FileState
    base_after: FileState | None = None


def plan_handover(
    folder: Path, wishes: Iterable[PlannedChange], contents: Contents, harmless: Collection[str] = ()
) -> list[DeliveredFile]:
    """Plan the delivery of each file. Merged and replaced contents are added to `contents`.

    Files that go come first: another one may need the place, as a folder or under a name in other letters.
    """
    ordered = sorted(wishes, key=lambda wish: (bool(wish.after.sha256), wish.after.path))
    gone = {wish.after.path for wish in ordered if not wish.after.sha256}
    found = (plan_delivery(folder, wish, contents, harmless, gone) for wish in ordered)
    return [one for one in found if one is not None]


def is_obstructed(folder: Path, path: str, gone: Collection[str]) -> bool:
    """Whether no file can be written at the path, even after those that are `gone`."""
    if not Workspace(folder).obstacle(path):
        return False
    if any(parent in gone for parent in path_and_parents(path) - {path}):
        return False
    place = folder / path
    inside = (
        [f"{path}/{one}" for one in files_below(place)] if place.is_dir() and not place.is_symlink() else []
    )
    return not inside or not set(inside).issubset(gone)


def plan_delivery(
    folder: Path,
    wish: PlannedChange,
    contents: Contents,
    harmless: Collection[str] = (),
    gone: Collection[str] = (),
) -> DeliveredFile | None:
    """Plan the delivery of one file; None if it needs no change."""
    path, after = wish.after.path, wish.after
    now = file_state(folder, path)
    if same_content(now, after) or same_content(wish.base, after):
        return None
    conflict = DeliveredFile(path=path, before=now, after=after, how="conflict")
    current = content_of(folder, now)
    link_goes = now.kind == "link" and not after.sha256
    blocked = now.size >= MAX_FILE_BYTES or (is_obstructed(folder, path, gone) and not link_goes)
    marked = bool(after.sha256) and has_marks(contents[after.sha256])
    if blocked or marked or (current is not None and is_secret(path, current, harmless)):
        return conflict
    contents.update({now.sha256: current} if current is not None else {})
    if same_content(now, wish.base):
        kept = replace(after, kind=now.kind) if now.sha256 and after.sha256 and now.kind != "link" else after
        return DeliveredFile(path=path, before=now, after=kept, base_after=wish.base_after)
    merged = merge_states(wish.base, now, after, contents)
    if merged is None:
        return conflict
    return DeliveredFile(
        path=path,
        before=now,
        after=merged,
        how="merged",
        base_before=wish.base,
        base_after=wish.base_after or after,
    )


def same_content(one: FileState, other: FileState) -> bool:
    """Whether both have the same content, and both are links or neither is."""
    return one.sha256 == other.sha256 and (one.kind == "link") == (other.kind == "link")


def merge_states(base: FileState, now: FileState, after: FileState, contents: Contents) -> FileState | None:
    """Merge both sides' changes of a file; None if they conflict, or one side has no file."""
    if not (now.sha256 and after.sha256) or "link" in (base.kind, now.kind, after.kind):
        return None
    merge = merge_file(contents.get(base.sha256, b""), contents[now.sha256], contents[after.sha256])
    if not merge.clean or merge.content is None:
        return None
    state = replace(now, sha256=sha256(merge.content).hexdigest(), size=len(merge.content))
    contents[state.sha256] = merge.content
    return state


def hand_over(
    folder: Path, one: DeliveredFile, contents: Contents, harmless: Collection[str] = ()
) -> DeliveredFile:
    """Write one file atomically; safe to repeat after an interruption. An edit since the plan is merged or kept."""
    if one.how == "conflict" or same_content(file_state(folder, one.path), one.after):
        return one
    wish = PlannedChange(base=one.before, after=one.after, base_after=one.base_after)
    again = plan_delivery(folder, wish, contents, harmless)
    if again is None or again.how == "conflict":
        return one if again is None else again
    make_folder(folder)
    try:
        put_state(Workspace(folder), again.after, contents.get(again.after.sha256, b""))
    except OSError as error:
        cause = f"{one.path} cannot be written ({error.strerror})"
        raise StoreFailed(
            cause, "once it can, the next septet deliver or resume goes on with the delivery"
        ) from error
    if same_content(again.before, one.before):
        return replace(one, after=again.after)
    return replace(again, base_before=one.base_before or one.before)


def diff_of(wishes: Iterable[tuple[FileState, FileState]], contents: Mapping[str, bytes]) -> str:
    """A unified diff of all files; binary files are only named."""
    return "".join(file_diff(before, after, contents) for before, after in wishes)


def file_diff(before: FileState, after: FileState, contents: Mapping[str, bytes]) -> str:
    texts = [text_for_diff(one, contents) for one in (before, after)]
    if any(one.sha256 and text is None for one, text in zip((before, after), texts, strict=True)):
        return f"Binary files a/{before.path} and b/{after.path} differ\n"
    return diff_text(after.path, texts[0], texts[1])


def text_for_diff(one: FileState, contents: Mapping[str, bytes]) -> str | None:
    content = contents.get(one.sha256)
    if content is None or b"\0" in content:
        return None
    return content.decode(errors="replace")


def check_destination(path: Path) -> None:
    """Raise BadUsage if the file could not be written; creates nothing."""
    try:
        if path.is_dir():
            raise BadUsage(f"{path} is a folder", "name a file in it")
        if not path.parent.is_dir():
            raise BadUsage(f"{path} cannot be written: there is no folder {path.parent}", "make it first")
        place = path if path.exists() and not path.is_file() else path.resolve().parent
        if not os.access(place, os.W_OK):
            raise BadUsage(f"{path} cannot be written: {place} is not writable", "name another file")
    except OSError as error:
        raise BadUsage(
            f"{str(path)[:80]} cannot be written: {error.strerror}", "name another file"
        ) from error


def write_file_atomically(path: Path, content: bytes) -> None:
    """Replace the file atomically; a pipe or device is written to directly."""
    check_destination(path)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            replace_file(path.resolve(), content)
    except OSError as error:
        raise StoreFailed(
            f"{path} was not written: {error.strerror}", "make room or name another file"
        ) from error


def replace_file(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name[:200]}.{os.getpid()}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            if path.exists():
                os.fchmod(handle, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(handle)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise
