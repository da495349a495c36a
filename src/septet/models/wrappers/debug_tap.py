"""A model whose questions somebody listens to: for debugging. Keys are not part of a question."""

from collections.abc import AsyncGenerator, Callable

from septet.domain.messages import Request
from septet.models.wrappers.ask import Item, asked
from septet.ports import Model

Overhear = Callable[[Request], None]


class Overheard:
    def __init__(self, model: Model, overhear: Overhear) -> None:
        self._model = model
        self._overhear = overhear

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        self._overhear(request)
        async with asked(self._model, request) as items:
            async for item in items:
                yield item
