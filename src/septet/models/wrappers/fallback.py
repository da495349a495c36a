"""Several models for one role: if one fails, the next one answers."""

from collections.abc import AsyncGenerator, Callable, Sequence

from septet.domain.messages import Request
from septet.models.faults import Fault
from septet.models.wrappers.ask import Item, ShownDeltas, open_answer
from septet.ports import Model

Notify = Callable[[str], None]


class Fallback:
    """`notify` is called with the reason for which the next model is used."""

    def __init__(self, models: Sequence[tuple[str, Model]], notify: Notify) -> None:
        self._models = tuple(models)
        self._notify = notify

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        shown = ShownDeltas()
        for number, (name, model) in enumerate(self._models, start=1):
            try:
                async with open_answer(model, request) as items:
                    async for item in items:
                        shown.add(item)
                        yield item
                return
            except Fault as error:
                fault = error
            if number == len(self._models):
                raise fault
            self._notify(f"{name} failed ({fault.cause}); {self._models[number][0]} answers instead")
            for delta in shown.restart():
                yield delta
