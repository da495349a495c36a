"""A model with faults of its own, by a seed: shows that a team survives a bad day of its provider."""

import random
from collections.abc import AsyncGenerator, Callable

from septet.domain.messages import Answer, Request
from septet.models.faults import Broken, Fault, Garbled, Limited, Stalled, TooLong, Unreachable
from septet.models.wrappers.ask import Item, asked
from septet.ports import Model

KINDS: tuple[Callable[[], Fault], ...] = (
    lambda: Limited("chaos: slow down", after=0.01),
    lambda: Broken("chaos: the server answered 500"),
    lambda: Unreachable("chaos: the connection was lost"),
    lambda: Stalled("chaos: silence"),
    lambda: Garbled("chaos: the answer was cut off"),
    lambda: TooLong("chaos: the context is too small"),
)


class Chaos:
    """Each question meets a fault with the probability `share`, before the answer or in the middle of it.

    The seed, the role and the step decide: the same chat has the same bad luck.
    """

    def __init__(self, model: Model, seed: int, share: float) -> None:
        self._model = model
        self._seed = seed
        self._share = share
        self._asked = 0

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        self._asked += 1
        luck = random.Random(f"{self._seed} {request.role} {request.step} {self._asked}")  # noqa: S311  # no secret
        fault = luck.choice(KINDS)() if luck.random() < self._share else None
        if fault is not None and luck.random() < 0.5:
            raise fault
        async with asked(self._model, request) as items:
            async for item in items:
                if fault is not None and isinstance(item, Answer):
                    raise fault
                yield item
