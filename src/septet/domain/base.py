"""The base: the files of the person's folder when a chat started, and what a delivery did to them."""

from collections.abc import Mapping
from typing import Literal

from septet.common.values import Value

GIT = "git:"
"""The prefix of a digest whose content git stores; other digests are plain sha256."""

EntryKind = Literal["file", "program", "link"]


class BaseEntry(Value, array_like=True):
    """A file, an executable one (`program`) or a link of the base. `digest` is empty if it is too big to read."""

    path: str
    kind: EntryKind = "file"
    size: int = 0
    digest: str = ""


class FileState(Value):
    """What is at a path: the kind of the entry and the sha256 of its content, empty if there is no file."""

    path: str
    sha256: str = ""
    size: int = 0
    kind: EntryKind = "file"


class DeliveredFile(Value):
    """A file of the person's folder before and after a delivery; a `conflict` was not changed.

    The base's file is given if it differs from the folder's: a merge contains changes that the team has not seen yet.
    """

    path: str
    before: FileState
    after: FileState
    how: Literal["written", "merged", "conflict"] = "written"
    base_before: FileState | None = None
    base_after: FileState | None = None


class SecretRules(Value):
    """What the person says about files that look like secrets, as patterns of paths."""

    unmasked: tuple[str, ...] = ()
    """Programs may read them; they are shown to no model."""
    harmless: tuple[str, ...] = ()
    """They only look like secrets."""


class Manifest(Value):
    """Every entry of a base. `masked` files exist, but look like secrets and are shown to nobody."""

    entries: tuple[BaseEntry, ...] = ()
    masked: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    """What git ignores, and nested repositories: programs may need them, versions never contain them."""
    secrets: SecretRules = SecretRules()

    def by_path(self) -> Mapping[str, BaseEntry]:
        return {entry.path: entry for entry in self.entries}
