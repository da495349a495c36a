"""Files that are not a whole log of ours, and disks that do not take one: named in one line, and left as they are."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from stores.logs import HELLO, fill, names

from septet.domain.events import PersonSpoke, TurnOpened
from septet.errors import LogDamaged, SeptetError, StoreFailed
from septet.ports import EventStore
from septet.stores.sqlite import open_store

pytestmark = pytest.mark.anyio


async def fill_up(store: EventStore) -> None:
    """Append until something gives way."""
    for number in range(1000):
        await store.append("clock", PersonSpoke(text="x" * 20_000), after=number)


async def failure_of_reading(path: Path) -> SeptetError:
    async with open_store(path) as store:
        with pytest.raises(StoreFailed) as caught:
            await store.read("clock")
    return caught.value


async def failure_of_appending(path: Path) -> SeptetError:
    async with open_store(path, busy_timeout=0.2) as store:
        with pytest.raises(StoreFailed) as caught:
            await store.append("clock", HELLO, after=None)
    return caught.value


def text_file(path: Path) -> None:
    path.write_text("dear diary\n" * 1000)


def short_text_file(path: Path) -> None:
    path.write_text("hi")


def foreign_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()


def changed_log(path: Path, *statements: str) -> None:
    anyio.from_thread.run(fill, path)
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def newer_log(path: Path) -> None:
    changed_log(path, "PRAGMA user_version = 99")


def log_without_tables(path: Path) -> None:
    changed_log(path, "DROP TABLE events", "DROP TABLE chats")


def overwritten_log(path: Path) -> None:
    anyio.from_thread.run(fill, path, 40)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\x55" * (len(content) - 4096))


def truncated_log(path: Path) -> None:
    anyio.from_thread.run(fill, path, 40)
    path.write_bytes(path.read_bytes()[:5000])


def log_with_missing_event(path: Path) -> None:
    changed_log(path, "DELETE FROM events WHERE seq = 3")


def log_with_garbage(path: Path) -> None:
    changed_log(path, "UPDATE events SET data = x'00ff'")


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (text_file, "is not a Septet log"),
        (short_text_file, "is not a Septet log"),
        (foreign_database, "is a database of another program"),
        (newer_log, "was written by a newer Septet"),
        (log_without_tables, "is damaged"),
        (overwritten_log, "is damaged"),
        (truncated_log, "is damaged"),
        (log_with_missing_event, "are missing in"),
        (log_with_garbage, "cannot be read"),
    ],
)
async def test_what_is_not_a_whole_log_of_ours_is_named_in_one_line(
    tmp_path: Path, spoil: Callable[[Path], None], cause: str
) -> None:
    path = tmp_path / "log.db"
    await anyio.to_thread.run_sync(spoil, path)

    error = await failure_of_reading(path)

    assert isinstance(error, LogDamaged)
    assert cause in error.cause
    assert error.remedy
    assert "\n" not in str(error)


@pytest.mark.parametrize("spoil", [text_file, short_text_file, foreign_database])
async def test_a_foreign_file_is_not_touched(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    path = tmp_path / "log.db"
    spoil(path)
    before = path.read_bytes()

    await failure_of_appending(path)

    assert path.read_bytes() == before
    assert names(tmp_path) == ["log.db"]


async def test_damage_that_an_append_meets_is_named_like_that_which_reading_meets(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with open_store(path) as store:
        seen = (await store.append("clock", TurnOpened(speaker="coder"), after=0))[-1].seq
        await store.append("clock", HELLO, after=None)
        with sqlite3.connect(path) as other:
            other.execute("ALTER TABLE events RENAME TO gone")
        other.close()

        with pytest.raises(StoreFailed):
            await store.append("clock", TurnOpened(speaker="runner"), after=seen)


async def test_a_folder_is_not_a_log(tmp_path: Path) -> None:
    assert "cannot be" in (await failure_of_reading(tmp_path)).cause
    assert "cannot be" in (await failure_of_appending(tmp_path)).cause


async def test_a_log_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert "cannot be used" in (await failure_of_appending(tmp_path / "file" / "log.db")).cause


async def test_a_log_that_stays_locked_is_named_and_works_again_later(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await fill(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    async with open_store(path, busy_timeout=0.1) as store:
        with pytest.raises(StoreFailed, match="locked"):
            await store.append("clock", HELLO, after=5)
        assert len(await store.read("clock")) == 5
        other.execute("ROLLBACK")
        other.close()

        assert (await store.append("clock", HELLO, after=5))[-1].seq == 6


async def test_a_full_disk_loses_nothing_and_work_goes_on_when_there_is_room(
    small_disk: Callable[[str], Path],
) -> None:
    path = small_disk("size=1m") / "log.db"
    async with open_store(path) as store:
        with pytest.raises(StoreFailed, match="full"):
            await fill_up(store)
        stored = len(await store.read("clock"))
        assert stored > 5

        small_disk("size=4m")
        assert (await store.append("clock", HELLO, after=stored))[-1].seq == stored + 1

    async with open_store(path) as store:
        assert len(await store.read("clock")) == stored + 1


async def test_a_log_cannot_be_begun_on_a_full_disk(small_disk: Callable[[str], Path]) -> None:
    folder = small_disk("size=1m")
    (folder / "ballast").write_bytes(b"x" * (1 << 20))

    error = await failure_of_appending(folder / "log.db")

    assert not isinstance(error, LogDamaged)
    (folder / "ballast").unlink()
    await fill(folder / "log.db")


async def test_a_disk_that_cannot_be_written_is_named(small_disk: Callable[[str], Path]) -> None:
    path = small_disk("size=1m") / "log.db"
    await fill(path)
    small_disk("ro")

    error = await failure_of_appending(path)

    assert not isinstance(error, LogDamaged)
    assert "cannot be" in error.cause
