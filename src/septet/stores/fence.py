"""The fence: the rule, shared by all stores, for who may append to a chat; and wake-ups of watchers."""

from collections.abc import Iterable

import anyio

from septet.errors import Conflict


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
    """One event per chat with watchers; each is set once and then replaced."""

    def __init__(self) -> None:
        self._events: dict[str, anyio.Event] = {}

    def event_of(self, chat: str) -> anyio.Event:
        """The event that the next `notify` sets. Get it before reading, so that nothing in between is missed."""
        return self._events.setdefault(chat, anyio.Event())

    def notify(self, chats: Iterable[str]) -> None:
        for chat in chats:
            if event := self._events.pop(chat, None):
                event.set()

    def notify_all(self) -> None:
        self.notify(tuple(self._events))
