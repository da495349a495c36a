"""A model with faults of its own, by a seed: shows that a team survives a bad day of its provider."""

import random
from collections.abc import AsyncGenerator, Callable

from septet.domain.messages import Answer, Request
from septet.models.faults import (
    ConnectionFailed,
    ContextExceeded,
    Fault,
    InvalidAnswer,
    RateLimited,
    ServerError,
    TimedOut,
)
from septet.models.wrappers.ask import Item, open_answer
from septet.ports import Model

FAULTS: tuple[Callable[[], Fault], ...] = (
    lambda: RateLimited("chaos: slow down", after=0.01),
    lambda: ServerError("chaos: the server answered 500"),
    lambda: ConnectionFailed("chaos: the connection was lost"),
    lambda: TimedOut("chaos: silence"),
    lambda: InvalidAnswer("chaos: the answer was cut off"),
    lambda: ContextExceeded("chaos: the context is too small"),
)


class Chaos:
    """Each question meets a fault with the probability `share`, before the answer or in the middle of it.

    The seed, the role and the step decide: the same chat has the same bad luck.
    """

    def __init__(self, model: Model, seed: int, probability: float) -> None:
        self._model = model
        self._seed = seed
        self._probability = probability
        self._asked = 0

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        self._asked += 1
        luck = random.Random(f"{self._seed} {request.role} {request.step} {self._asked}")  # noqa: S311  # no secret
        fault = luck.choice(FAULTS)() if luck.random() < self._probability else None
        if fault is not None and luck.random() < 0.5:
            raise fault
        async with open_answer(self._model, request) as items:
            async for item in items:
                if fault is not None and isinstance(item, Answer):
                    raise fault
                yield item
