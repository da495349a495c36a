"""Hearing what a NATS server says as it comes off the wire.

The client has a queue and a task for each subscription: more work than most messages are worth. Whoever only notes a
message, and leaves what follows to others, can hear it at once.
"""

import asyncio
import logging
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

LOG = logging.getLogger("septet.cluster")
Hear = Callable[[Msg], None]
"""Must not wait: the next message is read when it returns."""


class Ear(asyncio.Future[Msg]):
    """For each message the client sets the result of a subscription's future: this one takes any number of them."""

    def __init__(self, hear: Hear) -> None:
        super().__init__()
        self._hear = hear

    def set_result(self, result: Msg, /) -> None:
        try:
            self._hear(result)
        except Exception as error:  # whatever it says, the connection must go on
            LOG.warning("a message on %s makes no sense (%s)", result.subject, type(error).__name__)


async def listen(client: Client, subject: str, hear: Hear, queue: str = "") -> Subscription:
    """From here on `hear` is called with each message of the subject; of a queue each goes to one who listens."""
    return await client.subscribe(subject, queue=queue, future=Ear(hear))  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
