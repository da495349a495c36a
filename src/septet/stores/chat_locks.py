"""Who works on a chat: a locked file for each, which the system frees when its process ends in whatever way.

The fence keeps the log whole where two conduct a chat; the lock keeps the second from buying answers in vain.
"""

import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path

from septet.common.text import encode_token
from septet.errors import Conflict

LONGEST = 200
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class ChatLocks:
    """The chats that this process works on, and the folder in which others of this machine see that."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def acquire(self, chat: str) -> None:
        """Have the chat to ourselves until it is released. Raises Conflict, which says who has it."""
        if chat not in self._held:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._held[chat] = self._lock(chat)

    def release(self, chat: str) -> None:
        """Nothing where it is not ours."""
        if (handle := self._held.pop(chat, None)) is not None:
            self._path(chat).unlink(missing_ok=True)
            os.close(handle)

    def close(self) -> None:
        for chat in list(self._held):
            self.release(chat)

    def _path(self, chat: str) -> Path:
        return self._folder / encode_token(chat)

    def _lock(self, chat: str) -> int:
        while True:
            handle = os.open(self._path(chat), _OPEN, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                owner = os.pread(handle, LONGEST, 0).decode(errors="replace")
                os.close(handle)
                raise conflict(chat, owner) from error
            if self._is_there(chat, handle):
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
                return handle
            os.close(handle)  # who had it took it away between our opening and our locking it

    def _is_there(self, chat: str, handle: int) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(handle), self._path(chat).stat())
        return False


def conflict(chat: str, owner: str) -> Conflict:
    return Conflict(
        f"{owner or 'another process'} works on '{chat}' already",
        "watch it there or in `septet web`, or resume it when that one has stopped",
    )
