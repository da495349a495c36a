"""A model whose questions somebody listens to: for debugging. Keys are not part of a question."""

from collections.abc import AsyncGenerator, Callable

from septet.domain.messages import Request
from septet.models.wrappers.ask import Item, open_answer
from septet.ports import Model

RequestListener = Callable[[Request], None]


class DebugTap:
    def __init__(self, model: Model, listen: RequestListener) -> None:
        self._model = model
        self._listen = listen

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        self._listen(request)
        async with open_answer(self._model, request) as items:
            async for item in items:
                yield item
