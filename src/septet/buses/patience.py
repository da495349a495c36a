"""Trying again while the server is away: the client reconnects by itself, and there is nothing else to do."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import nats.errors

T = TypeVar("T")
PAUSE = 0.2


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    """Try for ever."""
    while True:
        try:
            return await attempt()
        except nats.errors.TimeoutError:
            continue
        except nats.errors.Error:
            await anyio.sleep(PAUSE)
