"""Lists the files of a folder that may be read: not those that git ignores, nor those that look like secrets.

Programs ran there, so links are not followed, and the numbers of files and levels are limited.
"""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from septet.common.secrets import is_secret_name, secret_kind
from septet.common.values import Value
from septet.workspace.files import FOLDER_FLAGS, Workspace, make_root_accessible
from septet.workspace.git import open_git, repository_of

LIST = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")


def ignored_paths(folder: Path) -> set[str]:
    """Paths in the folder that git ignores; a folder that is ignored as a whole is one path."""
    top = repository_of(folder)
    if top is None:
        return set()
    answers = (git_ignored(folder.resolve(), top, with_index=index) for index in (True, False))
    names = next((names for names in answers if names is not None), None)
    names = guess_ignored(folder) if names is None else names
    return set() if "./" in names else {name.rstrip("/") for name in names}  # the workspace itself is ignored


def git_ignored(folder: Path, top: Path, *, with_index: bool) -> list[str] | None:
    """Git's output; None if git is missing or cannot read the repository."""
    with open_git(folder, top, with_index=with_index) as git:
        return git(*LIST) if git else None


def guess_ignored(folder: Path) -> list[str]:
    """Without git: all paths that a rule of the folder's .gitignore could match."""
    rules: list[str] = []
    with suppress(OSError):
        text = (folder / ".gitignore").read_text(errors="replace")
        rules = [
            line.strip().strip("/") for line in text.splitlines() if line.strip()[:1] not in ("", "#", "!")
        ]
    return [path for path in below(folder) if any(matches_ignore_rule(path, rule) for rule in rules)]


def matches_ignore_rule(path: str, rule: str) -> bool:
    return fnmatch(path, rule) or any(fnmatch(part, rule) for part in path.split("/"))


def below(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield str(Path(place, name).relative_to(folder))


LEFT_ALONE = {
    ".git",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".pytest_cache",
    ".ruff_cache",
    ".mypy_cache",
}
MOST = 20_000
DEEPEST = 64
LOOKED_INTO = 4 << 20
"""Bytes of a text that are searched for secrets."""
LARGEST_TEXT = 256 << 10


class FolderEntry(Value):
    """An entry of a folder. `sha256` is empty for a file whose content was not stored."""

    path: str
    kind: Literal["file", "link", "folder", "odd"]
    sha256: str = ""
    size: int = 0
    executable: bool = False
    target: str = ""


class FolderListing(Value):
    """The entries of a folder. `whole`: none is missing, apart from those that may not be read."""

    entries: tuple[FolderEntry, ...] = ()
    ignored: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    whole: bool = True


class Walk:
    """One walk through a folder, parents first."""

    def __init__(self, root: Path, hidden: Collection[str], harmless: Collection[str] = ()) -> None:
        self.root = root
        self.harmless = harmless
        self.ignored = set(hidden)
        self.left: list[str] = []
        self.secrets: list[str] = []
        self.whole = True

    def entries(self) -> Iterator[FolderEntry]:
        root = os.open(self.root, FOLDER_FLAGS & ~os.O_NOFOLLOW)
        try:
            for count, entry in enumerate(self._beneath(root, "", 0)):
                if count >= MOST:
                    self.whole = False
                    return
                yield entry
        finally:
            os.close(root)

    def _beneath(self, folder: int, prefix: str, depth: int) -> Iterator[FolderEntry]:
        names = sorted(os.listdir(folder))
        if depth and ".git" in names:  # a nested repository has its own rules
            self.ignored |= {prefix + path for path in ignored_paths(self.root / prefix)}
        for name in names:
            if name in LEFT_ALONE or any(0xD800 <= ord(sign) < 0xE000 for sign in name):
                continue
            if prefix + name in self.ignored:
                self.left.append(prefix + name)
                continue
            with suppress(FileNotFoundError):
                yield from self._entry(folder, name, prefix, depth)

    def _entry(self, folder: int, name: str, prefix: str, depth: int) -> Iterator[FolderEntry]:
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(state.st_mode):
            yield from self._leaf(folder, name, prefix, state)
            return
        yield FolderEntry(path=prefix + name, kind="folder")
        try:
            deeper = os.open(name, FOLDER_FLAGS, dir_fd=folder)
        except PermissionError:
            self.whole = False
            return
        try:
            if depth < DEEPEST:
                yield from self._beneath(deeper, f"{prefix}{name}/", depth + 1)
            else:
                self.whole = False
        finally:
            os.close(deeper)

    def _leaf(self, folder: int, name: str, prefix: str, state: os.stat_result) -> Iterator[FolderEntry]:
        path = prefix + name
        if stat.S_ISLNK(state.st_mode):
            yield FolderEntry(path=path, kind="link", target=os.readlink(name, dir_fd=folder))
        elif not stat.S_ISREG(state.st_mode):
            yield FolderEntry(path=path, kind="odd")
        elif is_secret_name(path) and not matches_any(path, self.harmless):
            self.secrets.append(path)
        else:
            executable = bool(state.st_mode & stat.S_IXUSR)
            yield FolderEntry(path=path, kind="file", size=state.st_size, executable=executable)


def list_folder(root: Path, hidden: Collection[str], harmless: Collection[str] = ()) -> FolderListing:
    """Walk the folder except `hidden` paths. Secrets are found by name here, by content when a file is read."""
    if not root.is_dir():
        return FolderListing()
    make_root_accessible(root)
    walk = Walk(root, hidden, harmless)
    entries = tuple(walk.entries())
    return FolderListing(
        entries=entries, ignored=tuple(walk.left), secrets=tuple(walk.secrets), whole=walk.whole
    )


class FolderTexts(Mapping[str, str]):
    """Texts of a folder by their paths: those that are known, else as they stand there, read when they are asked for.

    `read` holds what was.
    """

    def __init__(
        self,
        known: Mapping[str, str],
        workspace: Workspace,
        hidden: Collection[str],
        largest: int = LARGEST_TEXT,
        harmless: Collection[str] = (),
    ) -> None:
        self.known = known
        self._largest = largest
        self._harmless = harmless
        self._workspace = workspace
        others = [
            one.path for one in list_folder(workspace.root, hidden, harmless).entries if one.kind == "file"
        ]
        self._paths = dict.fromkeys([*known, *others])
        self.read: dict[str, bytes] = {}

    def __getitem__(self, path: str) -> str:
        if path in self.known:
            return self.known[path]
        content = self._workspace.read(path) if path in self._paths else None
        text = (
            None
            if content is None or is_secret(path, content, self._harmless)
            else text_of_content(content, self._largest)
        )
        if text is None or content is None:
            raise KeyError(path)
        self.read[path] = content
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def is_secret(path: str, content: bytes, harmless: Collection[str] = ()) -> bool:
    """Whether the file looks like a secret, unless it is one of the `harmless` ones."""
    return bool(secret_reason(path, content)) and not matches_any(path, harmless)


def secret_reason(path: str, content: bytes) -> str:
    """Why the file looks like a secret: its name, or a key or token in its text; empty if it does not."""
    if is_secret_name(path):
        return "its name"
    if b"\0" in content[:LOOKED_INTO]:
        return ""
    return secret_kind(content[:LOOKED_INTO].decode(errors="replace"), path)


def matches_any(path: str, patterns: Collection[str]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def text_of_content(content: bytes, largest: int = LARGEST_TEXT) -> str | None:
    """The content as text; None if it is binary or too long."""
    try:
        text = content.decode() if len(content) <= largest else None
    except UnicodeDecodeError:
        return None
    return None if text is None or "\0" in text else text
