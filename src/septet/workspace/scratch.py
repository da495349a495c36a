"""The scratch: a copy of the person's folder that the team works in. The folder itself stays as it is until delivery.

    SEPTET_HOME/scratch/CHAT/base   the folder as the chat found it, and as the person has changed it since
    SEPTET_HOME/scratch/CHAT/work   the base with the newest version over it: where programs run
    SEPTET_HOME/scratch/CHAT/setup  the environment that the project's setup command made, if it has none of its own

Nothing but Septet writes into `base`. Whatever programs do to `work` can be put right from it.
"""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from septet.common.secrets import is_secret_name, values_of
from septet.domain.base import GIT, EntryKind, FileState, Manifest
from septet.domain.files import WorkspaceDelta
from septet.workspace.base import is_listed, list_base, looks_secret, packed_files
from septet.workspace.files import MAX_FILE_BYTES, Workspace, make_folder, path_and_parents
from septet.workspace.git import GitFolders, git_folders, open_git, repository_of
from septet.workspace.listing import LEFT_ALONE, LIST, FolderEntry, FolderTexts, is_secret, matches_any
from septet.workspace.snapshots import put_entry

FICLONE = 0x40049409
"""Linux's ioctl for a copy-on-write clone of a file."""
NOT_HERE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM}
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
SMALL = 1 << 18
"""Files up to this size are copied faster by read and write than by the kernel."""


def copy_files(source: Path, target: Path, paths: Iterable[str]) -> None:
    """Copy files into an empty folder; skip what vanishes meanwhile, or is neither file nor link."""
    before, after = os.fspath(source), os.fspath(target)
    made: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        if folder not in made:
            os.makedirs(f"{after}/{folder}", exist_ok=True)  # noqa: PTH103  thousands of them
            made.add(folder)
        with suppress(FileNotFoundError, PermissionError):
            copy_new(f"{before}/{path}", f"{after}/{path}")


def copy_entry(source: Path, target: Path) -> None:
    """One file or link; what stands at the target goes. FileNotFoundError where there is none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        target.unlink()
    copy_new(os.fspath(source), os.fspath(target))


def copy_new(source: str, target: str) -> None:
    try:
        reading = os.open(source, READING)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK):
            raise
        os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211  thousands of them
        return
    try:
        status = os.fstat(reading)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "is no file", source)
        writing = os.open(target, WRITING, 0o600)
        try:
            copy_content(reading, writing, status.st_size)
            os.fchmod(writing, stat.S_IMODE(status.st_mode) & 0o777 | 0o600)
            os.utime(writing, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def copy_content(source: int, target: int, size: int) -> None:
    """Copy a small file by read and write; a big one by a clone, else within the kernel, else by this process."""
    if size <= SMALL:
        while piece := os.read(source, SMALL):
            os.write(target, piece)
        return
    with suppress(OSError):
        fcntl.ioctl(target, FICLONE, source)
        return
    try:
        while size > 0 and (done := copy_file_range(source, target, size)):
            size -= done
    except OSError as error:
        if error.errno not in NOT_HERE:
            raise
        copy_through(source, target)


def copy_file_range(source: int, target: int, size: int) -> int:
    """Only Linux has it."""
    if not hasattr(os, "copy_file_range"):
        raise OSError(errno.ENOSYS, "no copy_file_range")
    return os.copy_file_range(source, target, size)


def copy_through(source: int, target: int) -> None:
    os.lseek(source, 0, os.SEEK_SET)
    os.lseek(target, 0, os.SEEK_SET)
    os.ftruncate(target, 0)
    with os.fdopen(os.dup(source), "rb") as before, os.fdopen(os.dup(target), "wb") as after:
        shutil.copyfileobj(before, after)


ENVIRONMENTS = (".venv", "venv", "node_modules")
"""Made by a setup command, the person's or Septet's."""
SHARED = (".git", *ENVIRONMENTS)
"""Not copied: programs see the person's own folders, read-only."""
CACHES = LEFT_ALONE - set(SHARED)
MOST_IGNORED = 2_000
LARGEST_IGNORED = 64 << 20
"""An ignored folder with more files, or a file with more bytes, is not copied either, but seen where it is."""

MOST_SECRETS = 100
"""Secret files whose values are looked for in what programs print."""

Stamp = tuple[int, int, int, int]


class Scratch:
    """One chat's copies of `origin`, the person's folder. All methods do disk work and must run in a thread."""

    def __init__(self, home: Path, origin: Path, manifest: Manifest, name: str = "") -> None:
        self.home = home
        self.name = name
        """Identifies the manifest: a base that was copied by another manifest is copied again."""
        self.origin = origin
        self.manifest = manifest
        self.base = Workspace(home / "base")
        self.work = Workspace(home / "work")
        self.setup = home / "setup"
        self.large = frozenset(one.path for one in manifest.entries if one.size > MAX_FILE_BYTES)
        """Files that no version can hold. They are not copied but seen where they are, read-only."""
        self.stamps: dict[str, Stamp | None] = {}
        """What the files of the work that are the base's looked like when they were copied."""
        self._texts: dict[str, tuple[Stamp | None, str | None]] = {}
        self.shared: tuple[str, ...] = ()
        """Paths of the person's folder that are mounted read-only."""

    def unpack_base(self, packed: BinaryIO) -> None:
        """Have the base from an archive: the folder is on another machine."""
        self._clear_base()
        for entry, content in packed_files(packed, self.manifest):
            digest = sha256(content).hexdigest()
            put_state(self.base, FileState(path=entry.path, sha256=digest, kind=entry.kind), content)
        (self.home / "complete").write_text(self.name)

    def _clear_base(self) -> None:
        make_folder(self.home)
        remove_tree(self.base.root)
        self.base.root.mkdir()

    def copy_base(self, otherwise: Mapping[str, bytes | None] | None = None) -> None:
        """Have the base, unless a copy of it is there and whole.

        What the person has changed since is given `otherwise`; what nobody has any more is left out.
        """
        if self.has_base():
            return
        self._clear_base()
        given = {**(otherwise or {}), **dict.fromkeys(self.large)}
        paths = (entry.path for entry in self.manifest.entries if entry.path not in given)
        copy_files(self.origin, self.base.root, paths)
        for path, entry in self.manifest.by_path().items() if given else ():
            if (content := given.get(path)) is not None:
                state = FileState(path=path, sha256=sha256(content).hexdigest(), kind=entry.kind)
                put_state(self.base, state, content)
        (self.home / "complete").write_text(self.name)

    def is_behind(self, one: FileState) -> bool:
        return file_state(self.base.root, one.path) != one

    def move_base(self, one: FileState, content: bytes | None) -> None:
        """A newer state of one file. What was not kept is taken from the folder, if it still stands there."""
        if content is None:
            self.take_over(one)
        else:
            self._outdate(one.path)
            put_state(self.base, one, content)

    def _outdate(self, path: str) -> None:
        """Note that the file in `work` is no longer the base's."""
        if path in self.stamps:
            self.stamps[path] = None

    def has_base(self) -> bool:
        """Whether the copy of the base is complete."""
        done = self.home / "complete"
        return done.is_file() and done.read_text() == self.name

    def is_ready(self) -> bool:
        return self.has_base() and self.work.root.is_dir()

    def discard(self) -> None:
        """Delete the copies; they can be rebuilt from the folder and the log."""
        (self.home / "complete").unlink(missing_ok=True)
        remove_tree(self.home)

    def rebuild(self) -> None:
        remove_tree(self.work.root)
        self.work.root.mkdir(parents=True)
        self.fill(self.work.root)
        self.stamps = {path: stamp_of(self.work.root / path) for path in files_below(self.base.root)}

    def fill(self, folder: Path) -> None:
        """An empty folder becomes a copy of the base, with what git ignores and the places for what is shared."""
        copy_files(self.base.root, folder, files_below(self.base.root))
        self.shared = tuple(self._add_unlisted(folder))

    def copy_to_work(self, path: str) -> None:
        clear_way(self.work.root, path)
        copy_entry(self.base.root / path, self.work.root / path)
        self.stamps[path] = stamp_of(self.work.root / path)

    def _add_unlisted(self, folder: Path) -> Iterator[str]:
        """What git ignores is copied where that is cheap; the rest is seen where it is. Secrets are not there."""
        made = self._made_by_setup()
        shared = (name for name in SHARED if name in made or (self.origin / name).exists())
        unmasked = (path for path in self.manifest.masked if self._is_unmasked(path))
        for path in dict.fromkeys([*self.manifest.unlisted, *unmasked, *self.large, *shared]):
            source = self.setup / path if path in made else self.origin / path
            name = path.rpartition("/")[2]
            masked = is_secret_name(path) and not self._is_unmasked(path)
            if name in CACHES or masked or source.is_symlink() or not source.exists():
                continue
            if name in SHARED or not self._copy_ignored(path, folder):
                make_mount_point(folder, path, source)
                yield path

    def was_set_up(self) -> bool:
        """Whether the setup command has run, well or not."""
        return self._setup_note.is_file()

    def setup_succeeded(self) -> bool:
        return self.was_set_up() and self._setup_note.read_text() == "well"

    @property
    def _setup_note(self) -> Path:
        """How the command ended; without it, nothing in the folder counts."""
        return self.setup.with_name("set up")

    def _made_by_setup(self) -> list[str]:
        names = [name for name in ENVIRONMENTS if not (self.origin / name).exists()]
        return [name for name in names if self.was_set_up() and (self.setup / name).is_dir()]

    def start_setup(self) -> Workspace:
        """A copy of the base for the setup command to run in."""
        self._setup_note.unlink(missing_ok=True)
        remove_tree(self.setup)
        self.setup.mkdir()
        self.fill(self.setup)
        return Workspace(self.setup)

    def finish_setup(self, succeeded: bool) -> None:
        """Of what the command made the environments are kept: they take their places in the work."""
        for entry in self.setup.iterdir():
            if entry.name in ENVIRONMENTS and entry.is_dir() and not entry.is_symlink():
                continue
            if entry.is_dir() and not entry.is_symlink():
                remove_tree(entry)
            else:
                entry.unlink()
        self._setup_note.write_text("well" if succeeded else "in vain")
        made = self._made_by_setup()
        for name in made:
            make_mount_point(self.work.root, name, self.setup / name)
        self.shared = tuple(dict.fromkeys([*self.shared, *made]))

    def _copy_ignored(self, path: str, folder: Path) -> bool:
        """Whether it was small enough."""
        names = list(islice(self._ignored_files(path), MOST_IGNORED + 1))
        with suppress(OSError):
            size = sum((self.origin / one).lstat().st_size for one in names)
            if len(names) > MOST_IGNORED or size > LARGEST_IGNORED:
                return False
        copy_files(self.origin, folder, names)
        return True

    def _ignored_files(self, path: str) -> Iterator[str]:
        source = self.origin / path
        inner = (f"{path}/{name}" for name in files_below(source)) if source.is_dir() else iter([path])
        return (
            one
            for one in inner
            if not path_and_parents(one) & CACHES
            and (self._is_unmasked(one) or not looks_secret(self.origin, one, self.manifest.secrets.harmless))
        )

    def _is_unmasked(self, path: str) -> bool:
        """Whether programs may read the file although it looks like a secret: the person says so."""
        return matches_any(path, (*self.manifest.secrets.unmasked, *self.manifest.secrets.harmless))

    def is_secret(self, path: str, content: bytes) -> bool:
        return is_secret(path, content, self.manifest.secrets.harmless)

    def secret_values(self) -> set[str]:
        """What programs could print of the secrets that are in the copy."""
        there = islice(
            (path for path in self.manifest.masked if (self.work.root / path).is_file()), MOST_SECRETS
        )
        return {value for path in there for value in values_of(self.work.read(path) or b"")}

    def show(self, delta: WorkspaceDelta, contents: Mapping[str, bytes]) -> None:
        """Write the delta over the base, and restore other files of the base that programs changed."""
        make_folder(self.work.root)
        self.reset(delta.paths)
        for path in (*(one for one in delta.leftovers if self.base.digest(one) == ""), *delta.deleted):
            self.remove(path)
        for file in delta.files:
            if self.work.digest(file.path) != file.sha256:
                clear_way(self.work.root, file.path)
                self.work.write(file.path, contents[file.path])
                self._keep_mode(file.path)

    def reset(self, changed: Iterable[str]) -> None:
        """Restore every file of the base that the version does not change."""
        beside, known = set(changed), set(files_below(self.base.root))
        for path in self.stamps.keys() - known - beside:
            self.remove(path)
        for path in known - beside:
            now = stamp_of(self.work.root / path)
            if now is None or self.stamps.get(path) != now:
                self.copy_to_work(path)

    def _keep_mode(self, path: str) -> None:
        """Write a file; one that was executable stays executable."""
        self.stamps.pop(path, None)
        with suppress(OSError):
            mode = (self.base.root / path).stat().st_mode & 0o777
            (self.work.root / path).chmod(mode | 0o600)

    def remove(self, path: str) -> None:
        self.stamps.pop(path, None)
        with suppress(OSError), self.work.folder_of(path) as (folder, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                remove_tree(self.work.root / path)
            else:
                os.unlink(name, dir_fd=folder)

    def texts(self, hidden: Collection[str]) -> dict[str, str]:
        """The base's files that can be shown; each is read again only when it has changed."""
        folder = FolderTexts({}, self.base, hidden, harmless=self.manifest.secrets.harmless)
        for path in folder:
            stamp = stamp_of(self.base.root / path)
            if path not in self._texts or self._texts[path][0] != stamp:
                self._texts[path] = (stamp, folder.get(path))
        found = {path: self._texts[path][1] for path in folder}
        return {path: text for path, text in found.items() if text is not None}

    def take_over(self, one: FileState) -> None:
        """Copy a file from the person's folder into the base, if it still has the expected state."""
        place = self.base.root / one.path
        if file_state(self.origin, one.path) != one:
            return
        self._outdate(one.path)
        if one.sha256:
            clear_way(self.base.root, one.path)
            copy_entry(self.origin / one.path, place)
        else:
            place.unlink(missing_ok=True)

    def edits(self) -> dict[str, FileState]:
        """The person's changes to the folder since the base: files, modes, links; not what git ignores.

        None if the folder is not there: it is on another machine, or was moved as a whole.
        """
        if not self.origin.is_dir():
            return {}
        listing = list_base(self.origin)
        tracked, known = set(listing.clean), set(files_below(self.base.root))
        masked = set(self.manifest.masked)  # an archive of the base does not have them
        changed = {
            path: file_state(self.origin, path)
            for path in sorted(known.union(tracked, listing.others))
            if is_listed(path)
            and quick_look(self.origin / path) != quick_look(self.base.root / path)
            and (
                path in known
                or path in tracked
                or not looks_secret(self.origin, path, self.manifest.secrets.harmless)
            )
            and (path in known or path not in masked)
            and path not in self.large
        }
        return {path: one for path, one in changed.items() if one != file_state(self.base.root, path)}

    def hidden(self) -> set[str]:
        """Hidden paths: git ignores them, now or when the chat began, or they look like secrets, or are too large."""
        known = {*self.manifest.unlisted, *self.manifest.masked, *self.large}
        folders = self._git_folders()
        if folders is None:
            return known
        with open_git(self.work.root, self.work.root, folders) as git:
            names = git(*LIST) if git else None
        ignored = {name.rstrip("/") for name in names or () if name != "./"}
        return known | (ignored - self.manifest.by_path().keys())

    def _git_folders(self) -> GitFolders | None:
        """The repository that says what is ignored; on a machine without it, the rules in the files alone say it."""
        if not self.origin.is_dir() and any(one.digest.startswith(GIT) for one in self.manifest.entries):
            return GitFolders(self.home / "git", self.home / "git")
        top = repository_of(self.origin)
        return git_folders(top) if top is not None and top == self.origin.resolve() else None


def content_of(root: Path, one: FileState) -> bytes | None:
    """The content that the state describes, if the file still has it."""
    if not one.sha256:
        return None
    with suppress(OSError):
        place = root / one.path
        content = os.fsencode(place.readlink()) if one.kind == "link" else Workspace(root).read(one.path)
        return content if content is not None and sha256(content).hexdigest() == one.sha256 else None
    return None


def put_state(workspace: Workspace, one: FileState, content: bytes) -> None:
    """Bring a path into the given state, atomically; a file keeps its other mode bits."""
    if not one.sha256:
        with suppress(OSError), workspace.folder_of(one.path) as (folder, name):
            os.unlink(name, dir_fd=folder)
            remove_empty_folders(workspace.root, one.path)
        return
    if one.kind == "link":
        put_entry(workspace, FolderEntry(path=one.path, kind="link", target=os.fsdecode(content)), {})
        return
    entry = FolderEntry(path=one.path, kind="file", sha256=one.sha256, executable=one.kind == "program")
    put_entry(workspace, entry, {one.sha256: content})


def remove_empty_folders(root: Path, path: str) -> None:
    """The folders on the way to a file that is gone, as git does it."""
    with suppress(OSError):
        for parent in (root / path).parents:
            if parent == root:
                return
            parent.rmdir()


def make_mount_point(root: Path, path: str, source: Path) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()


def remove_tree(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def clear_way(root: Path, path: str) -> None:
    """Clear the path: all parents are folders, and no folder is at its end, whatever programs have put there."""
    place = root
    for part in path.split("/")[:-1]:
        place = place / part
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)
    last = root / path
    if last.is_dir() and not last.is_symlink():
        remove_tree(last)


def files_below(root: Path, prefix: str = "") -> Iterator[str]:
    """All files and links as paths relative to the root; links are not followed."""
    with os.scandir(root / prefix if prefix else root) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(root, f"{path}/")
        else:
            yield path


def stamp_of(place: Path) -> Stamp | None:
    with suppress(OSError):
        status = place.lstat()
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
    return None


def quick_look(place: Path) -> tuple[int, int, int] | None:
    """A file's stat values, which show without reading whether it may have changed."""
    with suppress(OSError):
        status = place.lstat()
        return status.st_size, status.st_mtime_ns, status.st_mode & 0o170100
    return None


def file_state(root: Path, path: str) -> FileState:
    """The state at the path; a big file is identified by size and time."""
    place = root / path
    with suppress(OSError):
        if place.is_symlink():
            target = os.fsencode(place.readlink())
            return FileState(path=path, sha256=sha256(target).hexdigest(), size=len(target), kind="link")
        status = place.stat()
        kind: EntryKind = "program" if status.st_mode & 0o100 else "file"
        content = (
            Workspace(root).read(path) if status.st_size < MAX_FILE_BYTES else b"%d" % status.st_mtime_ns
        )
        if content is not None:
            return FileState(path=path, sha256=sha256(content).hexdigest(), size=status.st_size, kind=kind)
    return FileState(path=path)
