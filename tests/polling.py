"""Waiting for what another process does and announces to nobody."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


async def poll(look: Callable[[], Awaitable[T]], timeout: float = 120.0) -> T:
    """Look again and again until there is something; fails after `timeout` seconds."""
    with anyio.fail_after(timeout):
        while True:
            if found := await look():
                return found
            await anyio.sleep(0.01)
