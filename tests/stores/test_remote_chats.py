"""Notes of chats that run on other machines."""

from pathlib import Path

from msgspec.structs import replace

from septet.ports import RemoteChat
from septet.stores.remote_chats import RemoteChats

NOTE = RemoteChat(
    chat="a/b",
    server="there",
    command="septet resume a/b",
    goal="go",
    status="paused",
    ending="paused",
    versions=1,
    workspace="/w",
    changed=1.0,
)


def test_notes_are_listed_the_newest_first_and_damaged_ones_are_skipped(tmp_path: Path) -> None:
    chats = RemoteChats(tmp_path / "deep" / "notes")
    assert list(chats.all()) == []
    newer = replace(NOTE, chat="c", changed=2.0)
    for note in (NOTE, newer, NOTE):
        chats.save(note)
    (tmp_path / "deep" / "notes" / "x.json").write_text("{")
    assert list(chats.all()) == [newer, NOTE]
    for _ in range(2):
        chats.forget("a/b")
    assert list(chats.all()) == [newer]
