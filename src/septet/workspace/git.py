"""Runs git on a folder without trusting its repository.

A program that ran there may have created the repository, so its configuration, which can name commands, is not read.
Git gets an empty one, with the index, the objects and the local exclusions of the real one.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha1, sha256
from pathlib import Path

from septet.common.temporary import temporary_folder

PATIENCE = 20.0
LONGEST_RULES = 1 << 20
LONGEST_NAME = 4096
PLAIN = ("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false")
MISSING = "none"
SHA256_LENGTH = 64
LONGEST_CONFIG = 1 << 20
OBJECT_FORMAT = re.compile(r"(?im)^\s*objectformat\s*=\s*sha256\s*$")
HARMLESS = re.compile(
    r"(?im)^\s*(?:autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode|excludesfile)\s*=[^\\\"\n]*$"
)
"""Settings that say which files are changed or ignored, and can run nothing."""


def repository_of(folder: Path) -> Path | None:
    """The top of the repository that the folder belongs to."""
    with suppress(OSError):
        real = folder.resolve()
        return next((one for one in (real, *real.parents) if (one / ".git").exists()), None)
    return None


@dataclass(frozen=True, slots=True)
class GitFolders:
    """Where a repository keeps what belongs to this working tree, and what all its working trees share."""

    own: Path
    shared: Path

    @property
    def index(self) -> Path:
        return self.own / "index"

    def commit(self) -> str:
        """The commit that is checked out; nothing before the first one, or where it cannot be found."""
        head = _first_line(self.own / "HEAD")
        for _ in range(5):
            if not head.startswith("ref:"):
                break
            name = head.removeprefix("ref:").strip()
            if ".." in name.split("/"):
                return ""
            head = (
                _first_line(self.own / name)
                or _first_line(self.shared / name)
                or _packed(self.shared / "packed-refs", name)
            )
        return head if set(head) <= set("0123456789abcdef") and len(head) in (40, 64) else ""

    def harmless_config(self) -> str:
        """Of the repository's configuration, what git may be given: the format of ids and the harmless settings."""
        text = ""
        with suppress(OSError), (self.shared / "config").open("rb") as file:
            text = file.read(LONGEST_CONFIG).decode(errors="ignore")
        version = "1\n[extensions]\n\tobjectformat = sha256" if OBJECT_FORMAT.search(text) else "0"
        settings = "\n".join(line.strip() for line in HARMLESS.findall(text))
        return f"[core]\n{settings}\n\trepositoryformatversion = {version}\n"


def git_folders(top: Path) -> GitFolders:
    """Of a repository, a worktree or a submodule: the latter two say where theirs are."""
    own = top / ".git"
    if own.is_file():
        own = top / _first_line(own).removeprefix("gitdir:").strip()
    common = _first_line(own / "commondir")
    return GitFolders(own, own / common if common else own)


def _first_line(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError), path.open("rb") as file:
        return file.read(LONGEST_NAME).decode().partition("\n")[0].strip()
    return ""


def _packed(path: Path, name: str) -> str:
    with suppress(OSError, UnicodeDecodeError), path.open() as file:
        return next((line.split()[0] for line in file if line.rstrip().endswith(f" {name}")), "")
    return ""


@dataclass(frozen=True, slots=True)
class Git:
    """Runs git in a folder of a repository, as a stranger to that repository's configuration."""

    program: str
    folder: Path
    surroundings: dict[str, str]

    def __call__(self, *arguments: str) -> list[str] | None:
        """The names that it lists (`-z`); None where it does not get on with that repository."""
        said = self.output(*arguments)
        return None if said is None else [os.fsdecode(name) for name in said.split(b"\0") if name]

    def output(self, *arguments: str) -> bytes | None:
        try:
            run = subprocess.run(
                [self.program, *PLAIN, *arguments],
                cwd=self.folder,
                env=self.surroundings,
                capture_output=True,
                timeout=PATIENCE,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return run.stdout


@contextmanager
def open_git(
    folder: Path, top: Path, real: GitFolders | None = None, *, with_index: bool = True
) -> Generator[Git | None, None, None]:
    """Git for that folder, whose repository is `real` where it is not its own; nothing where git is not installed."""
    program = shutil.which("git")
    if program is None or not folder.is_dir():
        yield None
        return
    real = real or git_folders(top)
    with temporary_folder("git") as made:
        surroundings = {**git_surroundings(), "GIT_DIR": str(made), "GIT_WORK_TREE": str(top)}
        surroundings |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
        prepare_repository(made, real)
        if (real.shared / "objects").is_dir():
            surroundings["GIT_OBJECT_DIRECTORY"] = str(real.shared / "objects")
        if with_index and real.index.is_file():
            surroundings["GIT_INDEX_FILE"] = str(real.index)
        yield Git(program, folder, surroundings)


def prepare_repository(made: Path, real: GitFolders) -> None:
    """An empty repository with the real one's commit and local exclusions."""
    for name in ("objects", "refs", "info"):
        (made / name).mkdir()
    (made / "HEAD").write_text(f"{real.commit() or f'ref: refs/heads/{MISSING}'}\n")
    (made / "config").write_text(real.harmless_config())
    for shared in real.own.glob("sharedindex.*"):  # an index may be split in two
        (made / shared.name).symlink_to(shared)
    with suppress(OSError):
        if (real.shared / "info" / "exclude").is_file():
            with (real.shared / "info" / "exclude").open("rb") as rules:
                (made / "info" / "exclude").write_bytes(rules.read(LONGEST_RULES))


def blob_id(content: bytes, like: str = "") -> str:
    """Git's object id of a file with this content, in the format of an id like that one."""
    named = b"blob %d\0" % len(content) + content
    if len(like) == SHA256_LENGTH:
        return sha256(named).hexdigest()
    return sha1(named, usedforsecurity=False).hexdigest()


def git_surroundings() -> dict[str, str]:
    """The environment for git: without the variables that say which repository it is, as in a hook of another one."""
    kept = ("GIT_AUTHOR_", "GIT_COMMITTER_")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(kept)
    }


def blob_content(folder: Path, oid: str) -> bytes | None:
    """The content of a git object; None if git does not have it."""
    top = repository_of(folder)
    if top is None:
        return None
    with open_git(folder, top, with_index=False) as git:
        return git.output("cat-file", "blob", oid) if git else None
