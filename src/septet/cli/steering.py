"""The person's part while the team works: a line to steer it by, and questions in the same place."""

import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from septet.agents.proxy import Ask
from septet.cli.live import Screen
from septet.cli.options import Options
from septet.cli.person import asking
from septet.domain.events import PersonSpoke

Tell = Callable[[PersonSpoke], Awaitable[None]]


@asynccontextmanager
async def steering(screen: Screen, tell: Tell, options: Options) -> AsyncGenerator[Ask, None]:
    """How the person is asked; at a terminal that can show it, with a footer and what they type at any time."""
    if options.json or options.quiet or not screen.can_move:
        yield asking()
        return
    from septet.cli.footer import Footer

    footer = Footer(screen.standing, listening=sys.stdin.isatty())
    with notices(screen):
        async with anyio.create_task_group() as tasks:
            await tasks.start(footer.show)
            tasks.start_soon(deliver, footer.spoken, tell)
            screen.footer = footer
            try:
                yield asking(footer.ask, footer.handed_over)
            finally:
                footer.close()


async def deliver(spoken: MemoryObjectReceiveStream[str], tell: Tell) -> None:
    """What was sent is in the log, even if the person interrupts right after it."""
    with anyio.CancelScope(shield=True):
        async for text in spoken:
            await tell(PersonSpoke(text=text))


@contextmanager
def notices(screen: Screen) -> Generator[None, None, None]:
    """Warnings, such as that a model is asked again, stand among what happens."""

    class Notice(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            screen.say("septet", record.getMessage().removeprefix("septet: "))

    handler, logger = Notice(), logging.getLogger("septet")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
