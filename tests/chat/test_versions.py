"""The points of a chat that a workspace can be brought back to."""

import pytest
from team.states import STARTED, chat

from septet.chat.versions import Point, point_to_undo, points, version_diff, version_named
from septet.domain.events import Event, PersonSpoke, Recorded, SnapshotTaken, VersionWritten
from septet.domain.files import FileRef
from septet.errors import BadUsage
from septet.stores.memory import MemoryBlobs

pytestmark = pytest.mark.anyio


def snapshot(number: int, note: str = "") -> SnapshotTaken:
    return SnapshotTaken(number=number, manifest="m", entries=7, note=note)


def version(number: int, note: str = "", *files: FileRef) -> VersionWritten:
    return VersionWritten(number=number, files=files, tree=f"{number}", note=note)


def log(*events: Event) -> list[Recorded]:
    return [Recorded(chat="c", seq=seq, at=float(seq), event=event) for seq, event in enumerate(events, 1)]


def test_each_snapshot_and_version_is_a_point_with_its_time_and_note() -> None:
    file = FileRef(path="a", sha256="1", size=1)
    listed = log(
        snapshot(1),
        PersonSpoke(text="x"),
        version(1, "", file),
        snapshot(2, "mine"),
        version(2, "fixed\nall", file, file),
    )
    assert points(listed) == [
        Point(point="s1", at=1.0, note="before a step", files=7),
        Point(point="v1", at=3.0, note="written by the coder", files=1),
        Point(point="s2", at=4.0, note="mine", files=7),
        Point(point="v2", at=5.0, note="fixed", files=2),
    ]


@pytest.mark.parametrize(
    ("events", "point"),
    [
        ([], None),
        ([version(1)], None),
        ([snapshot(1)], None),
        ([snapshot(1), version(1)], "s1"),
        ([version(1), version(2), version(3)], "v2"),
        ([snapshot(1), version(1), snapshot(2), version(2), snapshot(3)], "s2"),
        ([snapshot(1), version(1), version(2)], "s1"),
    ],
)
def test_undo_goes_to_the_snapshot_before_the_newest_version_or_to_the_version_before(
    events: list[Event], point: str | None
) -> None:
    found = point_to_undo(log(*events))
    assert (found.point if found else None) == point


def test_a_version_is_found_by_its_number_and_else_the_known_ones_are_named() -> None:
    state = chat([STARTED, version(1), version(2)])
    assert [version_named(state, name).number for name in ("v2", "V1", "2")] == [2, 1, 2]
    with pytest.raises(BadUsage) as refused:
        version_named(state, "x" * 60)
    assert refused.value.cause == f"'c' has no version '{'x' * 40}'"
    assert refused.value.remedy == "it has v1 to v2"
    with pytest.raises(BadUsage) as refused:
        version_named(chat([STARTED]), "1")
    assert refused.value.remedy == "it has none yet"


async def test_the_difference_of_two_versions_is_of_the_files_that_differ() -> None:
    blobs = MemoryBlobs()

    async def file(path: str, content: bytes) -> FileRef:
        return FileRef(path=path, sha256=await blobs.put(content), size=len(content))

    same, gone = await file("same.py", b"x\n"), await file("gone.py", b"old\n")
    old = version(1, "", same, gone, await file("a.py", b"one\ntwo"))
    new = version(2, "", same, await file("a.py", b"one\nthree\n"), await file("new.py", b"\xff\n"))
    assert await version_diff(old, new, blobs) == (
        "--- v1/a.py\n+++ v2/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
        "--- v1/gone.py\n+++ v2/gone.py\n@@ -1 +0,0 @@\n-old\n"
        "--- v1/new.py\n+++ v2/new.py\n@@ -0,0 +1 @@\n+\ufffd\n"
    )
