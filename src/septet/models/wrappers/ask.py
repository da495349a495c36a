"""Asking a model from inside a wrapper: whatever happens, the answer's stream is closed."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from septet.domain.messages import Answer, Delta, Request
from septet.ports import Model

Item = Delta | Answer


@asynccontextmanager
async def open_answer(model: Model, request: Request) -> AsyncGenerator[AsyncIterator[Item], None]:
    items = model.answer(request)
    try:
        yield items
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


class ShownPieces:
    """Whether a watcher has seen a piece of an answer that may have to be made once more."""

    def __init__(self) -> None:
        self._pieces = False

    def add(self, item: Item) -> None:
        self._pieces = self._pieces or (isinstance(item, Delta) and bool(item.text or item.reasoning))

    def restart(self) -> list[Delta]:
        """What a watcher must be told before the answer starts over."""
        told = [Delta(restarted=True)] if self._pieces else []
        self._pieces = False
        return told
