"""Wakes those who wait for news of a chat, inside one event loop."""

from collections.abc import Iterable

import anyio


class Signals:
    """One event per chat that somebody waits for; each is used once and then replaced."""

    def __init__(self) -> None:
        self._events: dict[str, anyio.Event] = {}

    def of(self, chat: str) -> anyio.Event:
        """Set by the next `tell`. Take it before reading: news between the two is then not missed."""
        return self._events.setdefault(chat, anyio.Event())

    def tell(self, chats: Iterable[str]) -> None:
        for chat in chats:
            if event := self._events.pop(chat, None):
                event.set()

    def tell_all(self) -> None:
        self.tell(tuple(self._events))
