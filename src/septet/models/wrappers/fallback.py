"""Several models for one role: the next one answers when the one before it cannot."""

from collections.abc import AsyncGenerator, Callable, Sequence

from septet.domain.messages import Request
from septet.models.faults import Fault
from septet.models.wrappers.ask import Item, ShownPieces, open_answer
from septet.ports import Model

Notify = Callable[[str], None]


class Fallback:
    """`tell` hears why the next model was taken."""

    def __init__(self, models: Sequence[tuple[str, Model]], tell: Notify) -> None:
        self._models = tuple(models)
        self._tell = tell

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        shown = ShownPieces()
        for place, (name, model) in enumerate(self._models, start=1):
            try:
                async with open_answer(model, request) as items:
                    async for item in items:
                        shown.add(item)
                        yield item
                return
            except Fault as failed:
                fault = failed
            if place == len(self._models):
                raise fault
            self._tell(f"{name} failed ({fault.cause}); {self._models[place][0]} answers instead")
            for delta in shown.restart():
                yield delta
