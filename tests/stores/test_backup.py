"""Backups that are made while chats write, and space that comes back while they do."""

import os
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from polling import poll
from stores.logs import fill

from septet.domain.events import PersonSpoke
from septet.errors import BadUsage, LogDamaged, SeptetError
from septet.stores.backup import free_bytes, read_backup, vacuum, write_backup
from septet.stores.blobs import FolderBlobs, delete_unused_blobs
from septet.stores.sqlite import open_store

pytestmark = pytest.mark.anyio


class Appender:
    """A chat that appends until it is told to stop."""

    def __init__(self, database: Path, blobs: FolderBlobs) -> None:
        self.database = database
        self.blobs = blobs
        self.appended = 0
        self.stop = anyio.Event()

    async def work(self) -> None:
        async with open_store(self.database) as store:
            while not self.stop.is_set():
                address = await self.blobs.put(f"content {self.appended}".encode())
                await store.append("busy", PersonSpoke(text=f"see {address}"), after=self.appended)
                self.appended += 1

    async def has_appended(self, number: int) -> bool:
        return self.appended >= number


async def test_a_backup_while_a_chat_appends_holds_a_whole_log_with_its_blobs(tmp_path: Path) -> None:
    home, blobs = tmp_path / "home", FolderBlobs(tmp_path / "home" / "blobs")
    (home / "facts").mkdir(parents=True)
    (home / "facts" / "one.md").write_text("a fact")
    appender = Appender(home / "septet.db", blobs)
    made: list[int] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(appender.work)
        for number in range(3):
            wanted = appender.appended + 5
            await poll(lambda wanted=wanted: appender.has_appended(wanted), 60)
            file = tmp_path / f"{number}.zip"
            done = await anyio.to_thread.run_sync(
                write_backup, home / "septet.db", home / "blobs", {"facts": home / "facts"}, file
            )
            made.append(done.events)
        assert await anyio.to_thread.run_sync(delete_unused_blobs, home / "blobs", set) is None, "in use"
        appender.stop.set()
    blobs.close()
    assert 5 <= made[0] < made[1] < made[2]
    done = read_backup(tmp_path / "2.zip", tmp_path / "new")
    assert (done.chats, done.events, done.blobs) == (1, made[2], made[2])
    async with open_store(tmp_path / "new" / "septet.db") as store:
        log = await store.read("busy")
        assert [one.seq for one in log] == list(range(1, made[2] + 1))
        kept = FolderBlobs(tmp_path / "new" / "blobs")
        for number, one in enumerate(log):
            assert isinstance(one.event, PersonSpoke)
            assert await kept.get(one.event.text.removeprefix("see ")) == f"content {number}".encode()
        await store.append("busy", PersonSpoke(text="it goes on"), after=made[2])
    assert (tmp_path / "new" / "facts" / "one.md").read_text() == "a fact"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.zip", "1.zip", "2.zip", "home", "new"]


async def test_a_log_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    await fill(tmp_path / "septet.db")
    write_backup(tmp_path / "septet.db", tmp_path / "blobs", {}, tmp_path / "b.zip")
    with pytest.raises(BadUsage, match="exists already"):
        read_backup(tmp_path / "b.zip", tmp_path)


@pytest.mark.parametrize(
    "damage", ["no zip", "cut", "no log", "another file's place", "blob", "bits of the log"]
)
async def test_a_damaged_backup_changes_nothing(tmp_path: Path, damage: str) -> None:
    home, file = tmp_path / "home", tmp_path / "b.zip"
    blobs = FolderBlobs(home / "blobs")
    address = await blobs.put(b"content" * 1000)
    async with open_store(home / "septet.db") as store:
        await store.append("a", PersonSpoke(text=address), after=None)
    write_backup(home / "septet.db", home / "blobs", {}, file)
    blobs.close()
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    match damage:
        case "no zip":
            file.write_bytes(b"something else")
        case "cut":
            file.write_bytes(file.read_bytes()[:-200])
        case _:
            contents |= {
                "no log": {},
                "another file's place": {"../outside": b"x"},
                "blob": {f"blobs/{address[:2]}/{address[2:]}": b"other"},
                "bits of the log": {"septet.db": contents["septet.db"][:4096] + b"\0" * 12288},
            }[damage]
            if damage == "no log":
                del contents["septet.db"]
            with zipfile.ZipFile(file, "w") as archive:
                for name, content in contents.items():
                    archive.writestr(name, content)
    with pytest.raises((LogDamaged, BadUsage)):
        read_backup(file, tmp_path / "new")
    left = list((tmp_path / "new").iterdir()) if (tmp_path / "new").exists() else []
    assert left == []
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    "old", [False, True], ids=["a log of today", "a log that could not be vacuumed in steps"]
)
async def test_space_comes_back_while_a_chat_writes(tmp_path: Path, old: bool) -> None:
    database = tmp_path / "septet.db"
    async with open_store(database) as store:
        for number in range(300):
            await store.append("big", PersonSpoke(text="x" * 10_000), after=number)
        await store.append("stays", PersonSpoke(text="y"), after=0)
    if old:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA auto_vacuum = NONE")
            connection.execute("VACUUM")
    async with open_store(database) as store:
        await store.delete("big")
        assert free_bytes(database) > 2_000_000
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, vacuum, database)
            for number in range(1, 50):
                await store.append("stays", PersonSpoke(text="y"), after=number)
        assert free_bytes(database) == 0
    assert database.stat().st_size < 500_000
    async with open_store(database) as store:
        assert len(await store.read("stays")) == 50


async def test_what_comes_back_is_its_owners_alone_and_other_databases_come_along(tmp_path: Path) -> None:
    home, new = tmp_path / "home", tmp_path / "deep" / "new"
    blobs = FolderBlobs(home / "blobs")
    address = await blobs.put(b"content")
    async with open_store(home / "septet.db") as store:
        await store.append("a", PersonSpoke(text=address), after=None)
    blobs.close()
    (home / "facts" / "deep").mkdir(parents=True)
    (home / "facts" / "deep" / "one.md").write_text("a fact")
    with closing(sqlite3.connect(home / "examples.db")) as other:
        other.execute("CREATE TABLE t (x)")
        other.commit()
    (home / "notes.txt").write_text("no database")
    others = {name: home / name for name in ("facts", "examples.db", "gone.db", "notes.txt")}
    before = os.umask(0)
    try:
        write_backup(home / "septet.db", home / "blobs", others, tmp_path / "b.zip")
        done = read_backup(tmp_path / "b.zip", new)
    finally:
        os.umask(before)
    assert (done.chats, done.events, done.blobs) == (1, 1, 1)
    assert (tmp_path / "b.zip").stat().st_mode & 0o777 == 0o600
    paths = {str(path.relative_to(new)): path.stat().st_mode & 0o777 for path in new.rglob("*")}
    folders = ("blobs", f"blobs/{address[:2]}", "facts", "facts/deep")
    files = ("septet.db", f"blobs/{address[:2]}/{address[2:]}", "facts/deep/one.md", "examples.db")
    assert paths == {**dict.fromkeys(files, 0o600), **{name: paths[name] for name in folders}}
    own = [paths[name] for name in ("blobs/" + address[:2], "facts/deep")]
    assert (own, new.stat().st_mode & 0o777) == ([0o700, 0o700], 0o700)


async def test_a_big_old_log_is_rewritten_only_if_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "septet.db"
    assert (vacuum(database), free_bytes(database)) == (True, 0)
    async with open_store(database) as store:
        await store.append("big", PersonSpoke(text="x" * 100_000), after=0)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")
    size = database.stat().st_size
    async with open_store(database) as store:
        await store.delete("big")
    monkeypatch.setattr("septet.stores.backup.SMALL_LOG", size - 1)
    assert vacuum(database) is False
    assert free_bytes(database) > 90_000
    assert vacuum(database, rewrite=True) is True
    assert free_bytes(database) == 0
    assert database.stat().st_size < size


async def test_the_log_comes_back_last_and_not_at_all_if_a_blob_cannot(tmp_path: Path) -> None:
    home, new, file = tmp_path / "home", tmp_path / "new", tmp_path / "b.zip"
    blobs = FolderBlobs(home / "blobs")
    address = await blobs.put(b"content")
    async with open_store(home / "septet.db") as store:
        await store.append("a", PersonSpoke(text=address), after=None)
    write_backup(home / "septet.db", home / "blobs", {}, file)
    blobs.close()
    with zipfile.ZipFile(file, "a") as archive:
        archive.mkdir("facts")
    new.mkdir()
    (new / "blobs").write_text("a file in the way")
    with pytest.raises(SeptetError):
        read_backup(file, new)
    assert [path.name for path in new.iterdir()] == ["blobs"]
    (new / "blobs").unlink()
    assert read_backup(file, new).events == 1
    assert sorted(path.name for path in new.iterdir()) == ["blobs", "septet.db"], "folders alone are nothing"
