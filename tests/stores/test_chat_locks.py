"""One at a time works on a chat, and who dies gives it back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from septet.errors import Conflict
from septet.stores.chat_locks import ChatLocks

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
