"""One lock file per chat (flock); the kernel releases it when the owning process ends, however it ends.

The fence protects the log if two processes run a chat; the lock stops the second from paying for model answers it
cannot store.
"""

import fcntl
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from septet.common.text import encode_token
from septet.errors import Conflict, StoreFailed

if TYPE_CHECKING:
    import anyio


def check_fence(chat: str, last: int, fenced: int, after: int | None) -> None:
    """Let the append pass or raise Conflict.

    `last` is the newest sequence of the chat, `fenced` the newest that a conductor wrote. Messages of the
    person (`after=None`) always pass and do not move `fenced`.
    """
    if after is None:
        return
    if after == 0 and fenced:
        raise Conflict(f"a chat '{chat}' exists already", "resume it, or start one with another name")
    if fenced > after:
        raise Conflict(f"another conductor has the chat '{chat}'", "resume it when that one has stopped")
    if after > last:
        raise Conflict(f"the log of '{chat}' is shorter than it was before", "resume the chat")


def name_taken(name: str) -> Conflict:
    return Conflict(f"a chat '{name}' exists already", "choose another name")


def no_such_chat(chat: str) -> Conflict:
    return Conflict(f"there is no chat '{chat}' any more", "list the chats: septet list")


class Signals:
    """One event per chat with watchers; each is set once and then replaced, and goes with its last watcher."""

    def __init__(self) -> None:
        self._events: WeakValueDictionary[str, anyio.Event] = WeakValueDictionary()

    def event_of(self, chat: str) -> "anyio.Event":
        """The event that the next `notify` sets. Get it before reading, so that nothing in between is missed."""
        from anyio import Event

        return self._events.setdefault(chat, Event())

    def notify(self, chats: Iterable[str]) -> None:
        for chat in chats:
            if event := self._events.pop(chat, None):
                event.set()

    def notify_all(self) -> None:
        self.notify(tuple(self._events))


MAX_OWNER_BYTES = 200
_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class ChatLocks:
    """The locks that this process holds; `folder` is shared by all processes of the machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def acquire(self, chat: str) -> None:
        """Lock the chat for this process. Raises Conflict naming the owner, or StoreFailed."""
        if chat in self._held:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._held[chat] = self._lock(chat)
        except OSError as error:
            raise StoreFailed(
                f"{self._folder} cannot be written ({error.strerror})", "check the folder and the disk"
            ) from error

    def release(self, chat: str) -> None:
        """Release the lock. Does nothing if we do not hold it."""
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
            handle = os.open(self._path(chat), _OPEN_FLAGS, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                owner = os.pread(handle, MAX_OWNER_BYTES, 0).decode(errors="replace")
                os.close(handle)
                raise conflict(chat, owner) from error
            if self._still_linked(chat, handle):
                owner = f"process {os.getpid()} on {socket.gethostname()}".encode()
                os.pwrite(handle, owner, 0)
                # Not emptied first: ext4 writes a file that was emptied to the disk when it is closed.
                os.ftruncate(handle, len(owner))
                return handle
            os.close(handle)  # the previous owner deleted the file between our open and our flock; try again

    def _still_linked(self, chat: str, handle: int) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(handle), self._path(chat).stat())
        return False


def conflict(chat: str, owner: str) -> Conflict:
    return Conflict(
        f"{owner or 'another process'} works on '{chat}' already",
        "watch it there or in `septet web`, or resume it when that one has stopped",
    )
