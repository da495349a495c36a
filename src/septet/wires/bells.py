"""Waiting for news with a limit, again and again: a timer for each wait would cost more than the news."""

import asyncio


class Bell:
    """One waits, others ring. The timer of an earlier wait serves the later ones as well."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0

    def ring(self) -> None:
        """Wake who waits. One who comes later is not told: look for news before waiting."""
        self._wake(True)

    async def wait(self, seconds: float) -> bool:
        """Whether it rang within so many seconds."""
        loop = asyncio.get_running_loop()
        self._until = loop.time() + seconds
        self._waiting = loop.create_future()
        if self._timer is not None and self._timer.when() > self._until:
            self.hush()
        if self._timer is None:
            self._timer = loop.call_at(self._until, self._look, loop)
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def hush(self) -> None:
        """Nobody will wait any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._waiting is not None and loop.time() < self._until:
            self._timer = loop.call_at(self._until, self._look, loop)
        else:
            self._wake(False)

    def _wake(self, rang: bool) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(rang)
