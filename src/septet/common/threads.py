"""Blocking work: in a thread beside the event loop, or at once in a program without one.

Commands that only read chats have none: importing asyncio takes longer than all that they do.
"""

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from anyio import CapacityLimiter

T = TypeVar("T")


async def run_blocking(work: Callable[[], T], limiter: "CapacityLimiter | None" = None) -> T:
    if not has_event_loop():
        return work()
    from anyio import to_thread

    return await to_thread.run_sync(work, limiter=limiter)


def has_event_loop() -> bool:
    if "asyncio" not in sys.modules:
        return False
    from asyncio import get_running_loop

    try:
        get_running_loop()
    except RuntimeError:
        return False
    return True


def run_directly(coroutine: Coroutine[object, None, T]) -> T:
    """Run a coroutine that waits for nothing but blocking work."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("this needs an event loop: it waits for something else than blocking work")
