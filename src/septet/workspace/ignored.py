"""What git ignores in a folder, by git's own rules and without trusting the repository."""

import os
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

from septet.workspace.git import open_git, repository_of

LIST = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")


def ignored_paths(folder: Path) -> set[str]:
    """Paths in the folder that git ignores; a folder that is ignored as a whole stands for all that is in it."""
    top = repository_of(folder)
    if top is None:
        return set()
    answers = (git_ignored(folder.resolve(), top, with_index=index) for index in (True, False))
    names = next((names for names in answers if names is not None), None)
    names = guess_ignored(folder) if names is None else names
    return set() if "./" in names else {name.rstrip("/") for name in names}  # who works there means it


def git_ignored(folder: Path, top: Path, *, with_index: bool) -> list[str] | None:
    """Git's answer; None where there is no git or it does not get on with that repository."""
    with open_git(folder, top, with_index=with_index) as git:
        return git(*LIST) if git else None


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
