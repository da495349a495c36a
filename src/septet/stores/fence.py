"""The fence: one rule for every store about who may append to a chat."""

from collections.abc import Iterable

import anyio

from septet.errors import Conflict


def check_fence(chat: str, last: int, fenced: int, after: int | None) -> None:
    """Let the append pass or raise Conflict.

    `last` is the newest sequence of the chat, `fenced` the newest that a conductor wrote. Words of the
    person (`after=None`) always pass and do not move `fenced`.
    """
    if after is None:
        return
    if after == 0 and fenced:
        raise Conflict(f"a chat '{chat}' exists already", "resume it, or start one with another name")
    if fenced > after:
        raise Conflict(f"another conductor has the chat '{chat}'", "resume it when that one has stopped")
    if after > last:
        raise Conflict(f"the log of '{chat}' is shorter than what was seen of it", "resume the chat")


def name_taken(name: str) -> Conflict:
    return Conflict(f"a chat '{name}' exists already", "choose another name")


def no_such_chat(chat: str) -> Conflict:
    return Conflict(f"there is no chat '{chat}' any more", "list the chats: septet list")


class Signals:
    """One event per chat that somebody waits for; each is used once and then replaced."""

    def __init__(self) -> None:
        self._events: dict[str, anyio.Event] = {}

    def event_of(self, chat: str) -> anyio.Event:
        """Set by the next `tell`. Take it before reading: news between the two is then not missed."""
        return self._events.setdefault(chat, anyio.Event())

    def notify(self, chats: Iterable[str]) -> None:
        for chat in chats:
            if event := self._events.pop(chat, None):
                event.set()

    def notify_all(self) -> None:
        self.notify(tuple(self._events))
