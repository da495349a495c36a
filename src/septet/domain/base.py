"""The base: the state of the person's folder that a chat began on, entry by entry."""

from collections.abc import Mapping
from typing import Literal

from septet.common.values import Value

GIT = "git:"
"""Begins the digest of a file whose content git keeps; other digests are plain sha256."""

EntryKind = Literal["file", "program", "link"]


class BaseEntry(Value, array_like=True):
    """A file, an executable one (`program`) or a link of the base. `digest` is empty for one too big to be read."""

    path: str
    kind: EntryKind = "file"
    size: int = 0
    digest: str = ""


class FileState(Value):
    """What stands at a path: the content's sha256, which is empty where there is no file, and what kind it is."""

    path: str
    sha256: str = ""
    size: int = 0
    kind: EntryKind = "file"


class DeliveredFile(Value):
    """A file of the person's folder before and after a delivery; a `conflict` was left as it was.

    The base's file is told where it is not the folder's: a merge holds what the team has not seen yet.
    """

    path: str
    before: FileState
    after: FileState
    how: Literal["written", "merged", "conflict"] = "written"
    base_before: FileState | None = None
    base_after: FileState | None = None


class Manifest(Value):
    """Every entry of a base, by path. `masked` are there, but look like secrets: nobody is shown them."""

    entries: tuple[BaseEntry, ...] = ()
    masked: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    """What git ignores, and repositories within the repository: programs may need it, versions never hold it."""

    def by_path(self) -> Mapping[str, BaseEntry]:
        return {entry.path: entry for entry in self.entries}
