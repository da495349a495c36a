"""A model that is asked again when its service fails for the moment, within a bounded time."""

import math
import random
from collections.abc import AsyncGenerator, Callable

import anyio

from septet.common.values import Value
from septet.domain.messages import Request
from septet.models.faults import Limited, Passing, Stalled
from septet.models.wrappers.ask import Item, Shown, asked
from septet.models.wrappers.fallback import Tell
from septet.ports import Model

SOON = 2.0


class Patience(Value):
    """How long one answer may take in all, and the waits between attempts: doubled each time, with jitter.

    Who asks may have less time: then what would come too late is not waited for.
    """

    total: float = 900.0
    attempts: int = 8
    first: float = 0.5
    longest: float = 30.0

    def wait(self, attempt: int, fault: Passing, chance: float) -> float:
        """Seconds until the next attempt; a server's own wish is a floor, or all clients return at once."""
        backoff = min(self.longest, self.first * 2 ** (attempt - 1)) * (0.5 + chance / 2)
        if isinstance(fault, Limited) and fault.after is not None:
            return fault.after + min(backoff, 0.1 * fault.after)
        return backoff


class Retrying:
    """`tell` hears what a person who waits would like to know: not of a first hitch that is soon over."""

    def __init__(
        self, model: Model, patience: Patience, tell: Tell, chance: Callable[[], float] = random.random
    ) -> None:
        self._model = model
        self._patience = patience
        self._tell = tell
        self._chance = chance

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        end = min(anyio.current_time() + self._patience.total, anyio.current_effective_deadline())
        shown = Shown()
        attempt = 0
        while True:
            attempt += 1
            try:
                async with asked(self._model, request) as items:
                    async for item in items:
                        in_time(end)
                        shown.see(item)
                        yield item
                return
            except Passing as passing:
                fault = passing
            await self._rest(attempt, fault, end)
            for delta in shown.void():
                yield delta

    async def _rest(self, attempt: int, fault: Passing, end: float) -> None:
        """Wait for the next attempt, or give up at once if it would come too late."""
        seconds = self._patience.wait(attempt, fault, self._chance())
        if attempt >= self._patience.attempts or anyio.current_time() + seconds > end:
            raise fault
        if attempt > 1 or seconds > SOON:
            self._tell(f"no answer yet ({fault.cause}); asked again in {seconds:.0f} s")
        await anyio.sleep(seconds)


class Timed:
    """A model whose every try ends when the request's own time is over: it is then asked again, as for any hitch."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        limit = math.inf if request.timeout is None else request.timeout
        end = anyio.current_time() + limit
        async with asked(self._model, request) as items:
            while True:
                item = None
                # One scope for each piece: none may be open while this generator waits for its caller.
                with anyio.CancelScope(deadline=end) as scope:
                    item = await anext(items, None)
                if scope.cancelled_caught:
                    raise Stalled(f"no whole answer within {limit:g} s")
                if item is None:
                    return
                yield item


def in_time(end: float) -> None:
    """A server that drips for ever is silent never; the total deadline ends that too."""
    if anyio.current_time() > end:
        raise Stalled("the answer took longer than its deadline")
