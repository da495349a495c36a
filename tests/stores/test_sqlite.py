"""What is special about the log in a file: it is made when it is needed, and several processes share it."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from stores.logs import HELLO, fill, names

from septet.errors import Conflict
from septet.stores.sqlite import open_store

pytestmark = pytest.mark.anyio

APPENDER = Path(__file__).with_name("appender.py")


def start_appender(path: Path, chat: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(APPENDER), str(path), chat], stdout=subprocess.PIPE)


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
            with anyio.fail_after(120):
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


async def test_what_is_appended_just_before_the_store_closes_is_in_the_log(tmp_path: Path) -> None:
    async with open_store(tmp_path / "log.db") as store:
        await store.append("clock", HELLO, after=0)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.append, "clock", HELLO, 1)
                tasks.start_soon(store.close)
    async with open_store(tmp_path / "log.db") as again:
        assert len(await again.read("clock")) == 2
