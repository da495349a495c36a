"""What is special about the log in a file: several processes, full disks, and files that are not a log."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from septet.domain.events import PersonSpoke
from septet.errors import Conflict, LogDamaged, SeptetError, StoreFailed
from septet.ports import EventStore
from septet.stores.sqlite import open_store

pytestmark = pytest.mark.anyio

APPENDER = Path(__file__).with_name("appender.py")
HELLO = PersonSpoke(text="hello")


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def start_appender(path: Path, chat: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(APPENDER), str(path), chat], stdout=subprocess.PIPE)


async def fill(path: Path, events: int = 5) -> None:
    async with open_store(path) as store:
        for number in range(events):
            await store.append("clock", PersonSpoke(text=str(number) * 500), after=number)


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
    async with open_store(path, patience=0.2) as store:
        with pytest.raises(StoreFailed) as caught:
            await store.append("clock", HELLO, after=None)
    return caught.value


async def test_reading_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.db"

    async with open_store(path) as store:
        assert list(await store.chats()) == []
        assert list(await store.read("clock")) == []
        with anyio.move_on_after(0.3):
            async for _ in store.watch("clock"):
                pytest.fail("nothing was ever appended")

    assert names(tmp_path) == []


async def test_the_first_append_makes_the_folder_and_a_file_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "log.db"

    await fill(path)

    assert names(path.parent) == ["log.db"], "closing tidies up"
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_log_is_there_after_closing(tmp_path: Path) -> None:
    await fill(tmp_path / "log.db", events=3)

    async with open_store(tmp_path / "log.db") as store:
        assert [one.seq for one in await store.read("clock")] == [1, 2, 3]


async def test_sequences_of_a_chat_have_no_gaps(tmp_path: Path) -> None:
    async with open_store(tmp_path / "log.db") as store:
        for number in range(5):
            await store.append("one", HELLO, after=None)
            await store.append("two", HELLO, after=number)

        assert [one.seq for one in await store.read("two")] == [1, 2, 3, 4, 5]


async def test_two_stores_on_one_file_see_each_other_and_share_the_fence(tmp_path: Path) -> None:
    async with open_store(tmp_path / "log.db") as ours, open_store(tmp_path / "log.db") as theirs:
        await ours.append("clock", HELLO, after=0)
        assert list(await theirs.read("clock")) == list(await ours.read("clock"))
        await theirs.append("clock", HELLO, after=1)
        with pytest.raises(Conflict):
            await ours.append("clock", HELLO, after=1)


async def test_watching_notices_what_another_process_appends(tmp_path: Path) -> None:
    path, seen = tmp_path / "log.db", list[int]()
    async with open_store(path) as store:
        await store.append("other", HELLO, after=0)
        async with await anyio.open_process([sys.executable, str(APPENDER), str(path), "clock"]) as writer:
            with anyio.fail_after(30):
                async for recorded in store.watch("clock"):
                    seen.append(recorded.seq)
                    if len(seen) == 50:
                        break
            writer.kill()

    assert seen == list(range(1, 51))


async def test_processes_that_open_a_new_log_at_once_all_write_to_it(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    started = [start_appender(path, f"chat-{number}") for number in range(4)]
    for process in started:
        assert process.stdout is not None
        assert await anyio.to_thread.run_sync(process.stdout.readline) != b""
    for process in started:
        process.kill()
        process.communicate()

    async with open_store(path) as store:
        assert len(await store.chats()) == 4


async def test_a_cancelled_append_is_stored_or_not_but_never_in_the_way(tmp_path: Path) -> None:
    async with open_store(tmp_path / "log.db") as store:
        await store.append("clock", HELLO, after=0)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.append("clock", HELLO, after=1)
        seen = (await store.read("clock"))[-1].seq

        await store.append("clock", HELLO, after=seen)


def text_file(path: Path) -> None:
    path.write_text("dear diary\n" * 1000)


def short_text_file(path: Path) -> None:
    path.write_text("hi")


def foreign_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()


def newer_log(path: Path) -> None:
    anyio.from_thread.run(fill, path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def log_without_tables(path: Path) -> None:
    anyio.from_thread.run(fill, path)
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE events")
    connection.execute("DROP TABLE chats")
    connection.close()


def overwritten_log(path: Path) -> None:
    anyio.from_thread.run(fill, path, 40)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\x55" * (len(content) - 4096))


def truncated_log(path: Path) -> None:
    anyio.from_thread.run(fill, path, 40)
    path.write_bytes(path.read_bytes()[:5000])


def log_with_missing_event(path: Path) -> None:
    anyio.from_thread.run(fill, path)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM events WHERE seq = 3")
    connection.commit()
    connection.close()


def log_with_garbage(path: Path) -> None:
    anyio.from_thread.run(fill, path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE events SET data = x'00ff'")
    connection.commit()
    connection.close()


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
    async with open_store(path, patience=0.1) as store:
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
