"""The points that a workspace can be brought back to, out of the log: snapshots and versions."""

from collections.abc import Sequence

from septet.domain.events import Recorded, SnapshotTaken, VersionWritten
from septet.domain.values import Value


class Point(Value, omit_defaults=False):
    """`s3` or `v2`, when it came about, and what is known of it."""

    point: str
    at: float
    note: str
    files: int


def points(log: Sequence[Recorded]) -> list[Point]:
    """All of them, the oldest first."""
    return [point for recorded in log if (point := point_of(recorded)) is not None]


def point_of(recorded: Recorded) -> Point | None:
    match recorded.event:
        case SnapshotTaken(number=number, note=note, entries=entries):
            return Point(point=f"s{number}", at=recorded.at, note=note or "before a step", files=entries)
        case VersionWritten(number=number, note=note, files=files):
            told = note.splitlines()[0] if note else "written by the coder"
            return Point(point=f"v{number}", at=recorded.at, note=told, files=len(files))
        case _:
            return None


def before_last_act(log: Sequence[Recorded]) -> Point | None:
    """The snapshot before the newest version; without snapshots, the version before it."""
    known = points(log)
    newest = max((place for place, one in enumerate(known) if one.point.startswith("v")), default=0)
    earlier = known[:newest]
    snapshots = [one for one in earlier if one.point.startswith("s")]
    return (snapshots or earlier or [None])[-1]
