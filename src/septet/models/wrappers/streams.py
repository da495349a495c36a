"""What wrappers share: an answer's stream that is closed in any case, and a note whether a retry must void its text."""

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
    """Remembers whether any text of an answer was shown, so that a retry can void it."""

    def __init__(self) -> None:
        self._any = False

    def add(self, item: Item) -> None:
        self._any = self._any or (isinstance(item, Delta) and bool(item.text or item.reasoning))

    def restart(self) -> list[Delta]:
        """The deltas to send before the answer starts over."""
        deltas = [Delta(restarted=True)] if self._any else []
        self._any = False
        return deltas
