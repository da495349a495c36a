"""Retries a model after transient faults, within a time limit; if it fails for good, the next model answers."""

import random
from asyncio import get_running_loop
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

import anyio

from septet.common.values import Value
from septet.domain.messages import Request
from septet.models.faults import Fault, RateLimited, TimedOut, TransientFault
from septet.models.wrappers.streams import Item, ShownDeltas, open_answer
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


SHORT_WAIT = 2.0


def now() -> float:
    """The time of `anyio.current_time`, which looks for its backend at each call."""
    return get_running_loop().time()


class RetryPolicy(Value):
    """How long one answer may take in all, and the waits between attempts: doubled each time, with jitter.

    An earlier deadline of the caller counts too: no wait goes beyond it.
    """

    total_seconds: float = 900.0
    attempts: int = 8
    first_wait: float = 0.5
    max_wait: float = 30.0

    def wait(self, attempt: int, fault: TransientFault, chance: float) -> float:
        """Seconds until the next attempt. Retry-After gets jitter too, or all clients would return at once."""
        backoff = min(self.max_wait, self.first_wait * 2 ** (attempt - 1)) * (0.5 + chance / 2)
        if isinstance(fault, RateLimited) and fault.retry_after is not None:
            return fault.retry_after + min(backoff, 0.1 * fault.retry_after)
        return backoff


class Retry:
    """`notify` is called before each wait, except a first short one."""

    def __init__(
        self, model: Model, policy: RetryPolicy, notify: Notify, chance: Callable[[], float] = random.random
    ) -> None:
        self._model = model
        self._policy = policy
        self._notify = notify
        self._chance = chance

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        end = min(now() + self._policy.total_seconds, anyio.current_effective_deadline())
        shown = ShownDeltas()
        attempt = 0
        while True:
            attempt += 1
            try:
                async with open_answer(self._model, request) as items:
                    async for item in items:
                        if now() > end:  # a server that sends forever, but slowly, triggers no read timeout
                            raise TimedOut("the answer took longer than its deadline")
                        shown.add(item)
                        yield item
                return
            except TransientFault as error:
                fault = error
            await self._wait(attempt, fault, end)
            for delta in shown.restart():
                yield delta

    async def _wait(self, attempt: int, fault: TransientFault, end: float) -> None:
        """Wait for the next attempt, or give up at once if it would come too late."""
        seconds = self._policy.wait(attempt, fault, self._chance())
        if attempt >= self._policy.attempts or now() + seconds > end:
            raise fault
        if attempt > 1 or seconds > SHORT_WAIT:
            self._notify(f"no answer yet ({fault.cause}); next attempt in {seconds:.0f} s")
        await anyio.sleep(seconds)


class RequestTimeout:
    """Ends each attempt after the request's own timeout with a transient fault, so that it is retried."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def answer(self, request: Request) -> AsyncIterator[Item]:
        if request.timeout is None:
            return self._model.answer(request)
        return self._answer_within(request, request.timeout)

    async def _answer_within(self, request: Request, limit: float) -> AsyncGenerator[Item, None]:
        end = anyio.current_time() + limit
        async with open_answer(self._model, request) as items:
            while True:
                item = None
                # One cancel scope per item: none may be open while this generator is suspended.
                with anyio.CancelScope(deadline=end) as scope:
                    item = await anext(items, None)
                if scope.cancelled_caught:
                    raise TimedOut(f"no complete answer within {limit:g} s")
                if item is None:
                    return
                yield item
