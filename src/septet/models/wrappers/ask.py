"""Helps wrappers to call a model: closes the answer's stream in any case, and restarts what was shown of it."""

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


class ShownDeltas:
    """Records whether part of an answer was shown that may have to be generated again."""

    def __init__(self) -> None:
        self._any = False

    def add(self, item: Item) -> None:
        self._any = self._any or (isinstance(item, Delta) and bool(item.text or item.reasoning))

    def restart(self) -> list[Delta]:
        """The deltas to send before the answer starts over."""
        deltas = [Delta(restarted=True)] if self._any else []
        self._any = False
        return deltas
