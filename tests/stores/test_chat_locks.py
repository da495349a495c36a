"""One at a time works on a chat, and who dies gives it back."""

import gc
import os
import socket
import subprocess
import sys
from pathlib import Path
from weakref import ref

import pytest

from septet.errors import Conflict, StoreFailed
from septet.stores.chat_locks import ChatLocks, Signals, conflict

HOLD = (
    "import sys; from pathlib import Path; from septet.stores.chat_locks import ChatLocks\n"
    "ChatLocks(Path(sys.argv[1])).acquire('clock'); print('held', flush=True); sys.stdin.read()"
)


def test_the_second_is_told_who_has_it_and_has_it_after_that_one_was_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        locks = ChatLocks(tmp_path)
        with pytest.raises(Conflict, match=rf"process {holder.pid} on .+ works on 'clock' already"):
            locks.acquire("clock")
        locks.acquire("another")
        holder.kill()
        holder.wait()
        locks.acquire("clock")
        with pytest.raises(Conflict, match=f"process {os.getpid()} on"):
            ChatLocks(tmp_path).acquire("clock")


def test_taking_twice_is_taking_once_and_nothing_is_left_behind(tmp_path: Path) -> None:
    locks = ChatLocks(tmp_path)
    for _ in range(2):
        locks.acquire("a/b ü")
    locks.release("a/b ü")
    ChatLocks(tmp_path).acquire("a/b ü")
    locks.release("a/b ü")  # not ours any more
    with pytest.raises(Conflict):
        locks.acquire("a/b ü")
    locks.close()


def test_a_lock_is_its_owners_alone_and_says_who_has_it(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "locks"
    locks = ChatLocks(folder)
    before = os.umask(0)
    try:
        locks.acquire("clock")
    finally:
        os.umask(before)
    (file,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    owner = f"process {os.getpid()} on {socket.gethostname()}"
    assert file.read_text() == owner
    with pytest.raises(Conflict) as failed:
        ChatLocks(folder).acquire("clock")
    assert failed.value.cause == f"{owner} works on 'clock' already"
    file.unlink()
    locks.release("clock")
    assert conflict("clock", "").cause == "another process works on 'clock' already"


def test_a_longer_name_of_an_owner_before_is_gone(tmp_path: Path) -> None:
    locks = ChatLocks(tmp_path)
    locks.acquire("clock")
    (file,) = tmp_path.iterdir()
    locks.release("clock")
    file.write_text("x" * 500)
    locks.acquire("clock")
    assert file.read_text() == f"process {os.getpid()} on {socket.gethostname()}"
    locks.close()
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFailed, match="cannot be written"):
        ChatLocks(tmp_path / "file" / "locks").acquire("clock")


@pytest.mark.anyio
async def test_a_chat_that_nobody_watches_any_more_takes_no_memory() -> None:
    signals = Signals()
    watched, left = signals.event_of("watched"), ref(signals.event_of("left"))
    gc.collect()
    assert left() is None
    assert signals.event_of("watched") is watched
    signals.notify(("watched", "left"))
    assert watched.is_set()
    assert signals.event_of("watched") is not watched
