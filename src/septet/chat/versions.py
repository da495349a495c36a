"""The snapshots and versions in a log: the points that a workspace can be brought back to."""

from collections.abc import Sequence

from septet.common.text import unified_diff
from septet.common.values import Value
from septet.domain.events import Recorded, SnapshotTaken, VersionWritten
from septet.domain.state import State
from septet.errors import BadUsage
from septet.ports import Blobs


class Point(Value, omit_defaults=False):
    """A snapshot or a version by its name (`s3`, `v2`), when it was made, and a note on it."""

    point: str
    at: float
    note: str
    files: int


def points(log: Sequence[Recorded]) -> list[Point]:
    """List all points, oldest first."""
    return [point for recorded in log if (point := point_of(recorded)) is not None]


def point_of(recorded: Recorded) -> Point | None:
    match recorded.event:
        case SnapshotTaken(number=number, note=note, entries=entries):
            return Point(point=f"s{number}", at=recorded.at, note=note or "before a step", files=entries)
        case VersionWritten(number=number, note=note, files=files):
            first_line = note.splitlines()[0] if note else "written by the coder"
            return Point(point=f"v{number}", at=recorded.at, note=first_line, files=len(files))
        case _:
            return None


def point_to_undo(log: Sequence[Recorded]) -> Point | None:
    """Return the snapshot before the newest version; without snapshots, the version before it."""
    known = points(log)
    newest = max((index for index, point in enumerate(known) if point.point.startswith("v")), default=0)
    earlier = known[:newest]
    snapshots = [point for point in earlier if point.point.startswith("s")]
    return (snapshots or earlier or [None])[-1]


def version_named(state: State, name: str) -> VersionWritten:
    """Find a version by `v2` or `2`."""
    known = {str(version.number): version for version in state.work.versions}
    found = known.get(name.lower().removeprefix("v"))
    if found is None:
        has = f"it has v1 to v{len(known)}" if known else "it has none yet"
        raise BadUsage(f"'{state.chat}' has no version '{name[:40]}'", has)
    return found


async def version_diff(old: VersionWritten, new: VersionWritten, blobs: Blobs) -> str:
    """Return a unified diff over all files."""
    before = {file.path: file.sha256 for file in old.files}
    after = {file.path: file.sha256 for file in new.files}
    parts: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            left, right = await blob_lines(before.get(path), blobs), await blob_lines(after.get(path), blobs)
            parts += unified_diff(left, right, f"v{old.number}/{path}", f"v{new.number}/{path}")
    return "".join(parts)


async def blob_lines(address: str | None, blobs: Blobs) -> list[str]:
    text = (await blobs.get(address)).decode(errors="replace") if address else ""
    return [line if line.endswith("\n") else line + "\n" for line in text.splitlines(keepends=True)]
