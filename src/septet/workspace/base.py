"""The survey of a base: lists the files of the person's folder as git does, with their kinds and digests."""

import os
import stat
import tarfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Literal, NamedTuple

import msgspec

from septet.common.secrets import has_scanner, has_token, is_secret_name
from septet.domain.base import GIT, BaseEntry, Manifest, SecretRules
from septet.domain.events import BaseSurveyed
from septet.errors import BadUsage, LogDamaged
from septet.ports import Blobs
from septet.workspace.files import FILE_FLAGS, MAX_FILE_BYTES, Workspace, in_thread
from septet.workspace.git import Git, blob_content, blob_id, git_folders, open_git, repository_of
from septet.workspace.listing import (
    LEFT_ALONE,
    LOOKED_INTO,
    ignored_paths,
    is_secret,
    list_folder,
    matches_any,
)
from septet.workspace.project import conventions, interpreter, map_text, test_command

MOST_KEPT, LARGEST_KEPT = 16 << 20, 1 << 20
"""Bytes of all files, and of one file, of a base that are stored as blobs because git does not have them."""
MOST_NAMES = 100
"""Paths that the event lists; the manifest lists all."""
MOST_PACKED, PACKED_PIECE = 1 << 30, 16 << 20
"""Bytes of a base that is stored for members on other machines, and of one of its blobs."""
SUBMODULE = "160000"
NO_RULES = SecretRules()
DECODER = msgspec.json.Decoder(Manifest)


class Listing(NamedTuple):
    """The paths of a base before their contents are read; `clean` ones have git's digest."""

    kind: Literal["git", "folder", "empty"]
    clean: dict[str, str]
    others: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    """The others that git does not track; all of them where there is no git."""
    dirty: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    commit: str = ""


async def survey_base(
    folder: Path, blobs: Blobs, rules: SecretRules = NO_RULES, *, with_archive: bool = False
) -> BaseSurveyed:
    """Survey the folder. The manifest is stored as a blob; the event has a summary for people.

    With an archive, the whole base is stored: members on other machines do not have the folder.
    """
    survey, manifest = await in_thread(lambda: look_through(folder, rules))
    if not manifest.entries:
        return survey
    await keep_contents(folder, manifest, blobs)
    archive = await store_archive(folder, manifest, blobs) if with_archive else ()
    address = await blobs.put(msgspec.json.encode(manifest))
    return msgspec.structs.replace(survey, manifest=address, archive=archive)


async def store_archive(folder: Path, manifest: Manifest, blobs: Blobs) -> tuple[str, ...]:
    """Store the base's files, packed, in pieces; secrets and files too big for a version are left out."""
    masked = set(manifest.masked)
    entries = [one for one in manifest.entries if one.size <= MAX_FILE_BYTES and one.path not in masked]
    if (size := sum(entry.size for entry in entries)) > MOST_PACKED:
        cause = (
            f"{folder} has {size >> 20:,} MiB, members on other machines get at most {MOST_PACKED >> 20:,}"
        )
        raise BadUsage(cause, "work on it here: septet run GOAL")
    with TemporaryFile() as packed:
        harmless = manifest.secrets.harmless
        paths = (entry.path for entry in entries if not looks_secret(folder, entry.path, harmless))
        await in_thread(lambda: pack_files(folder, paths, packed))
        packed.seek(0)
        return tuple([await blobs.put(piece) for piece in iter(partial(packed.read, PACKED_PIECE), b"")])


def pack_files(folder: Path, paths: Iterable[str], packed: BinaryIO) -> None:
    """Pack files and links; skip what vanishes meanwhile."""
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for path in paths:
            with suppress(FileNotFoundError, PermissionError):
                archive.add(folder / path, path, recursive=False)


def packed_files(packed: BinaryIO, manifest: Manifest) -> Iterator[tuple[BaseEntry, bytes]]:
    """The entries of the base that the archive has, with their contents, which for a link is its target."""
    entries = manifest.by_path()
    with tarfile.open(fileobj=packed, mode="r:gz") as archive:
        for member in archive:
            entry, reader = entries.get(member.name), archive.extractfile(member) if member.isreg() else None
            if entry is not None and entry.kind == "link" and member.issym():
                yield entry, os.fsencode(member.linkname)
            elif entry is not None and reader is not None and member.size == entry.size:
                yield entry, reader.read()


async def keep_contents(folder: Path, manifest: Manifest, blobs: Blobs) -> None:
    """Store files that git does not have, up to the limits, so that a lost copy of the base can be restored."""
    room, masked = MOST_KEPT, set(manifest.masked)
    for entry in manifest.entries:
        if entry.kind == "link" or entry.digest.startswith(GIT) or entry.size > min(LARGEST_KEPT, room):
            continue
        if entry.path in masked:
            continue
        content = await in_thread(lambda entry=entry: Workspace(folder).read(entry.path, LARGEST_KEPT))
        if content is not None and has_digest(entry.digest, content):
            room -= len(content)
            await blobs.put(content)


async def base_content(folder: Path, entry: BaseEntry, blobs: Blobs) -> bytes | None:
    """An entry's content as the survey found it, from git or a blob; None if neither has it."""
    if not entry.digest.startswith(GIT):
        with suppress(LogDamaged):
            return await blobs.get(entry.digest)
        return None
    content = await in_thread(lambda: blob_content(folder, entry.digest.removeprefix(GIT)))
    if content is not None and len(content) != entry.size:  # git stores lines without carriage returns
        content = content.replace(b"\n", b"\r\n")
    return content if content is not None and len(content) == entry.size else None


def changed_entries(folder: Path, manifest: Manifest) -> list[BaseEntry]:
    """Entries that were deleted or changed since the survey."""
    clean = list_base(folder).clean
    return [
        entry
        for entry in manifest.entries
        if entry.digest and entry.digest != f"{GIT}{clean.get(entry.path)}" and not is_there(folder, entry)
    ]


def is_there(folder: Path, entry: BaseEntry) -> bool:
    place = folder / entry.path
    with suppress(OSError):
        if entry.kind == "link":
            return has_digest(entry.digest, os.fsencode(place.readlink()))
        content = Workspace(folder).read(entry.path)
        return content is not None and has_digest(entry.digest, content)
    return False


async def read_manifest(address: str, blobs: Blobs) -> Manifest:
    if not address:
        return Manifest()
    try:
        return DECODER.decode(await blobs.get(address))
    except msgspec.MsgspecError as error:
        raise LogDamaged(f"the survey {address[:12]} cannot be read", "start another chat") from error


def look_through(folder: Path, rules: SecretRules = NO_RULES) -> tuple[BaseSurveyed, Manifest]:
    listing = list_base(folder)
    manifest = manifest_of(folder, listing, rules)
    tests = test_command(folder, manifest.entries)
    survey = BaseSurveyed(
        kind=listing.kind,
        root=str(folder),
        files=len(manifest.entries),
        size=sum(entry.size for entry in manifest.entries),
        commit=listing.commit,
        dirty=listing.dirty[:MOST_NAMES],
        dirty_count=len(listing.dirty),
        ignored=len(manifest.unlisted),
        secrets=manifest.masked[:MOST_NAMES],
        map=map_text(manifest.entries),
        conventions=conventions(folder, manifest.entries),
        interpreter=interpreter(folder),
        tests=tests.command,
        tests_source=tests.source,
        unmasked=tuple(path for path in manifest.masked if matches_any(path, rules.unmasked))[:MOST_NAMES],
        scanned="kingfisher" if has_scanner() else "patterns",
    )
    return survey, manifest


def list_base(folder: Path) -> Listing:
    """List the paths by git or, without a repository that git can read, by walking the folder."""
    top = repository_of(folder)
    if top is not None:
        with open_git(folder.resolve(), top) as git:
            listing = list_by_git(git, git_folders(top).commit()) if git else None
        if listing is not None:
            return listing
    return list_by_walk(folder, "folder" if top is None else "git")


def list_by_git(git: Git, commit: str) -> Listing | None:
    lists = (
        git("ls-files", "-s", "-z"),
        git("ls-files", "-o", "--exclude-standard", "-z"),
        git("ls-files", "-m", "-z"),
    )
    if None in lists:
        return None
    staged, others, modified = (list(filter(is_listed, names or ())) for names in lists)
    index = {line.partition("\t")[2]: line.split(None, 2)[:2] for line in staged}
    against = ("diff-index", "--cached", "--name-only", "--relative", "-z", commit)
    changed = git(*against) if commit else [*index]
    nested = [path for path, (mode, _) in index.items() if mode == SUBMODULE]
    left_alone = untracked_environments(others, index)
    others = [path for path in others if environment_above(path) not in left_alone]
    plain = [path for path in others if not path.endswith("/")]
    ignored = filter(is_listed, git("ls-files", "-o", "-i", "--exclude-standard", "--directory", "-z") or ())
    unlisted = [*(path for path in ignored if path != "./"), *(path for path in others if path.endswith("/"))]
    touched = set(modified)
    clean = {path: oid for path, (_, oid) in index.items() if path not in touched and path not in nested}
    dirty = filter(is_listed, {*modified, *plain, *(changed or ())} - set(nested))
    return Listing(
        kind="git",
        clean=clean,
        others=tuple(path for path in dict.fromkeys([*modified, *plain]) if path not in nested),
        untracked=tuple(plain),
        dirty=tuple(sorted(dirty)),
        unlisted=tuple(sorted({path.rstrip("/") for path in unlisted}.union(nested, left_alone))),
        commit=commit,
    )


def untracked_environments(others: Iterable[str], tracked: Collection[str]) -> set[str]:
    """Environments and caches that git neither tracks nor ignores."""
    found = {environment_above(path) for path in others} - {""}
    return {folder for folder in found if not any(path.startswith(f"{folder}/") for path in tracked)}


def environment_above(path: str) -> str:
    """The outermost environment or cache that the path is in."""
    folders = path.split("/")[:-1]
    depth = next((depth for depth, name in enumerate(folders, 1) if name in LEFT_ALONE), 0)
    return "/".join(folders[:depth])


def list_by_walk(folder: Path, kind: Literal["git", "folder"]) -> Listing:
    found = list_folder(folder, ignored_paths(folder))
    names = [*(one.path for one in found.entries if one.kind in ("file", "link")), *found.secrets]
    paths = list(filter(is_listed, names))
    unlisted = [*found.ignored, *(name for name in LEFT_ALONE if (folder / name).is_dir())]
    empty = kind == "folder" and not paths
    return Listing(
        "empty" if empty else kind, {}, tuple(paths), tuple(paths), unlisted=tuple(sorted(unlisted))
    )


def manifest_of(folder: Path, listing: Listing, rules: SecretRules) -> Manifest:
    """What each path is. A secret that git tracks is listed, for it is published with the code; another one is not."""
    unlisted = set(listing.unlisted)
    closed = {path for path in listing.others if looks_secret(folder, path, rules.harmless)}
    left_out = closed.intersection(listing.untracked)
    shown = [path for path in listing.others if path not in left_out]
    entries = [*entries_of(folder, listing.clean, listing.clean), *entries_of(folder, shown, {})]
    named = (path for path in (*listing.clean, *unlisted) if is_secret_name(path))
    masked = {*closed, *(path for path in named if not matches_any(path, rules.harmless))}
    return Manifest(
        secrets=rules,
        entries=tuple(sorted(entries, key=lambda entry: entry.path)),
        masked=tuple(sorted(masked)),
        unlisted=tuple(sorted(unlisted)),
    )


def looks_secret(folder: Path, path: str, harmless: Collection[str]) -> bool:
    """Whether the file is a secret, by its name or its content."""
    if matches_any(path, harmless) or is_secret_name(path):
        return not matches_any(path, harmless)
    content = Workspace(folder).read(path, LOOKED_INTO)
    return content is not None and is_secret(path, content)


def entries_of(folder: Path, paths: Iterable[str], known: dict[str, str]) -> Iterator[BaseEntry]:
    """The entries that exist, without paths that are not valid text and anything but files and links."""
    for path in paths:
        if not is_listed(path):
            continue
        with suppress(OSError):
            yield entry_of(folder, path, known.get(path, ""))


def is_listed(path: str) -> bool:
    """Whether the log can hold the path, and models may see it: its bytes are UTF-8, and it is no token."""
    with suppress(UnicodeEncodeError):
        return bool(path.encode()) and not has_token(path)
    return False


def entry_of(folder: Path, path: str, oid: str = "") -> BaseEntry:
    """The current entry at the path; with git's digest the file is not read."""
    place = os.fspath(folder / path)
    status = os.lstat(place)
    digest = f"{GIT}{oid}" if oid else ""
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(Path(place).readlink())
        return BaseEntry(
            path=path, kind="link", size=len(target), digest=digest or sha256(target).hexdigest()
        )
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(path)
    kind = "program" if status.st_mode & stat.S_IXUSR else "file"
    if not digest and status.st_size <= MAX_FILE_BYTES:
        digest = workspace_file_digest(place)
    return BaseEntry(path=path, kind=kind, size=status.st_size, digest=digest)


def workspace_file_digest(place: str) -> str:
    handle = os.open(place, FILE_FLAGS)
    with os.fdopen(handle, "rb", buffering=0) as file:
        digest = sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def has_digest(digest: str, content: bytes) -> bool:
    """Whether the content has the digest."""
    if digest.startswith(GIT):
        oid = digest.removeprefix(GIT)
        return blob_id(content, oid) == oid
    return sha256(content).hexdigest() == digest
