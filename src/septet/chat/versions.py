"""Versions of the program, out of the log: whole, and compared."""

import difflib

from septet.domain.events import VersionWritten
from septet.domain.state import State
from septet.errors import BadUsage
from septet.ports import Blobs


def version_named(state: State, name: str) -> VersionWritten:
    """`v2` or `2`."""
    known = {str(version.number): version for version in state.versions}
    found = known.get(name.lower().removeprefix("v"))
    if found is None:
        has = f"it has v1 to v{len(known)}" if known else "it has none yet"
        raise BadUsage(f"'{state.chat}' has no version '{name[:40]}'", has)
    return found


async def difference(old: VersionWritten, new: VersionWritten, blobs: Blobs) -> str:
    """A unified diff over all files."""
    before = {file.path: file.sha256 for file in old.files}
    after = {file.path: file.sha256 for file in new.files}
    parts: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            left, right = await lines(before.get(path), blobs), await lines(after.get(path), blobs)
            parts += difflib.unified_diff(left, right, f"v{old.number}/{path}", f"v{new.number}/{path}")
    return "".join(parts)


async def lines(address: str | None, blobs: Blobs) -> list[str]:
    text = (await blobs.get(address)).decode(errors="replace") if address else ""
    return [line if line.endswith("\n") else line + "\n" for line in text.splitlines(keepends=True)]
