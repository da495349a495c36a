"""What wrappers share: an answer's stream that is closed in any case, and a note whether a retry must void its text."""

from collections.abc import AsyncGenerator, AsyncIterator

from septet.domain.messages import Answer, Delta, Request
from septet.ports import Model

Item = Delta | Answer


class open_answer:  # noqa: N801  # used like a function; a generator of its own would cost each wrapper 5 µs
    """The items of an answer, which are closed at the end of the context."""

    __slots__ = ("_items",)

    def __init__(self, model: Model, request: Request) -> None:
        self._items = model.answer(request)

    async def __aenter__(self) -> AsyncIterator[Item]:
        return self._items

    async def __aexit__(self, *_: object) -> None:
        items = self._items
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
