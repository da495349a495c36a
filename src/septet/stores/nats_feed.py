"""What the server tells of one chat as it stores it; where that has a gap, the log must be read."""

from collections import deque
from collections.abc import Mapping

from nats.aio.msg import Msg

from septet.stores.nats_stream import SEQUENCE, Stored, as_stored
from septet.stores.nats_subjects import whole_chat
from septet.wires.bells import Bell

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
"""Stored with every message of a conductor or member: the one of the chat that it comes right after."""
EXPECTED_OF = "Nats-Expected-Last-Subject-Sequence-Subject"
WITHOUT_BODY = "Nats-Msg-Size"
GLANCE = 2.0
"""Seconds after which one should look by oneself: what the server told may have been lost on the way."""
KEPT = 1000


def before(headers: Mapping[str, str], chat: str) -> int:
    """The message of the chat that comes right before, or -1 where the server has compared with less than the chat.

    A writer chooses what its event is compared with: one that leaves others out would hide what they wrote.
    """
    return int(headers.get(EXPECTED, "-1")) if headers.get(EXPECTED_OF) == whole_chat(chat) else -1


class Feed:
    def __init__(self, chat: str) -> None:
        self._chat = chat
        self._told: deque[Msg] = deque(maxlen=KEPT)
        self.bell = Bell()

    def hear(self, message: Msg) -> None:
        self._told.append(message)
        self.bell.ring()

    async def next(self, after: int) -> Stored | None:
        """The message right after the message `after`, or nothing where only the log knows what came next."""
        while self._told or await self.bell.wait(GLANCE):
            message = self._told.popleft()
            headers = message.headers or {}
            if int(headers.get(SEQUENCE, "0")) > after:
                follows = before(headers, self._chat) == after and WITHOUT_BODY not in headers
                return as_stored(message) if follows else None
        return None
