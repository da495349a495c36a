"""What git ignores in a folder, by git's own rules and without trusting the repository.

A program that ran there may have made the repository: its configuration, which can name commands, is never read.
Git gets an empty one, with the index and the local exclusions of the real one.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

from septet.common.temporary import temporary_folder

PATIENCE = 20.0
LONGEST_RULES = 1 << 20
LIST = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
PLAIN = ("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false")


def ignored_paths(folder: Path) -> set[str]:
    """Paths in the folder that git ignores; a folder that is ignored as a whole stands for all that is in it."""
    top = repository_of(folder)
    if top is None:
        return set()
    answers = (git_ignored(folder.resolve(), top, with_index=index) for index in (True, False))
    names = next((names for names in answers if names is not None), None)
    names = guess_ignored(folder) if names is None else names
    return set() if "./" in names else {name.rstrip("/") for name in names}  # who works there means it


def repository_of(folder: Path) -> Path | None:
    """The top of the repository that the folder belongs to."""
    with suppress(OSError):
        real = folder.resolve()
        return next((one for one in (real, *real.parents) if (one / ".git").exists()), None)
    return None


def git_ignored(folder: Path, top: Path, *, with_index: bool) -> list[str] | None:
    """Git's answer; None where there is no git or it does not get on with that repository."""
    git = shutil.which("git")
    if git is None or not folder.is_dir():
        return None
    with temporary_folder("git") as made:
        surroundings = {**os.environ, "GIT_DIR": str(made), "GIT_WORK_TREE": str(top)}
        surroundings |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
        index = prepare_repository(made, top)
        if with_index and index.is_file():
            surroundings["GIT_INDEX_FILE"] = str(index)
        try:
            run = subprocess.run(
                [git, *PLAIN, *LIST],
                cwd=folder,
                env=surroundings,
                capture_output=True,
                timeout=PATIENCE,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
    return [os.fsdecode(name) for name in run.stdout.split(b"\0") if name]


def prepare_repository(made: Path, top: Path) -> Path:
    """An empty repository with the real one's local exclusions; gives the path of the real one's index."""
    for name in ("objects", "refs", "info"):
        (made / name).mkdir()
    (made / "HEAD").write_text("ref: refs/heads/none\n")
    real = top / ".git"
    with suppress(OSError, UnicodeDecodeError):
        if real.is_file():  # a worktree or a submodule says where its repository is
            real = top / real.read_text()[:4096].removeprefix("gitdir:").strip()
    common = real
    with suppress(OSError, UnicodeDecodeError):
        common = real / (real / "commondir").read_text()[:4096].strip()
    with suppress(OSError):
        if (common / "info" / "exclude").is_file():
            with (common / "info" / "exclude").open("rb") as rules:
                (made / "info" / "exclude").write_bytes(rules.read(LONGEST_RULES))
    return real / "index"


def guess_ignored(folder: Path) -> list[str]:
    """Without git: whatever a rule of the folder's own .gitignore could mean."""
    rules: list[str] = []
    with suppress(OSError):
        text = (folder / ".gitignore").read_text(errors="replace")
        rules = [
            line.strip().strip("/") for line in text.splitlines() if line.strip()[:1] not in ("", "#", "!")
        ]
    return [path for path in below(folder) if any(matches(path, rule) for rule in rules)]


def matches(path: str, rule: str) -> bool:
    return fnmatch(path, rule) or any(fnmatch(part, rule) for part in path.split("/"))


def below(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield str(Path(place, name).relative_to(folder))
