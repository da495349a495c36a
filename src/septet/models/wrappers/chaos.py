"""Injects faults into a model, by a seed: shows that a team survives the failures of its provider."""

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
from septet.models.wrappers.streams import Item, open_answer
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
    """Each request meets a fault with the given probability, before the answer or in the middle of it.

    Seed, role, step and the number of the request decide: the same chat meets the same faults.
    """

    def __init__(self, model: Model, seed: int, probability: float) -> None:
        self._model = model
        self._seed = seed
        self._probability = probability
        self._requests = 0

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        self._requests += 1
        generator = random.Random(f"{self._seed} {request.role} {request.step} {self._requests}")  # noqa: S311  # no secret
        fault = generator.choice(FAULTS)() if generator.random() < self._probability else None
        if fault is not None and generator.random() < 0.5:
            raise fault
        async with open_answer(self._model, request) as items:
            async for item in items:
                if fault is not None and isinstance(item, Answer):
                    raise fault
                yield item
