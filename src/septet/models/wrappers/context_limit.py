"""A model that is asked with less when the request did not fit its context."""

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from septet.common.text import cut_middle
from septet.domain.messages import Message, Request
from septet.models.faults import ContextExceeded
from septet.models.wrappers.ask import Item, ShownPieces, open_answer
from septet.ports import Model

SHARES = (0.6, 0.35, 0.2, 0.1)
"""How much of the words stays, attempt by attempt."""

LEFT_OUT = "\n… {} left out to fit the model's context …\n"
EARLIER = Message(role="user", text="(earlier messages are left out to fit the model's context)")


class ContextLimit:
    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        shown = ShownPieces()
        for share in (1.0, *SHARES):
            smaller = shorten(request, share)
            try:
                async with open_answer(self._model, smaller) as items:
                    async for item in items:
                        shown.add(item)
                        yield item
                return
            except ContextExceeded as too_long:
                fault = too_long
            if share == SHARES[-1]:
                raise fault
            for delta in shown.restart():
                yield delta


def shorten(request: Request, share: float) -> Request:
    """The request within a share of its length: older turns go first, then the middle of long texts.

    What the role is told to do (the system text) stays whole, and so does the newest message's end.
    """
    if share >= 1.0:
        return request
    head = tuple(message for message in request.messages if message.role == "system")
    turns = request.messages[len(head) :]
    room = int(share * sum(len(message.text) for message in turns))
    kept = newest_messages(turns, room)
    limit = max(200, room // max(1, len(kept)))
    short = tuple(replace(message, text=cut_middle(message.text, limit, LEFT_OUT)) for message in kept)
    missing = (EARLIER,) if len(kept) < len(turns) else ()
    return replace(request, messages=(*head, *missing, *short))


def newest_messages(turns: tuple[Message, ...], room: int) -> tuple[Message, ...]:
    """The last messages that fit, the very last always; a tool's result never stands without its call."""
    start = len(turns) - 1
    while start > 0 and sum(len(message.text) for message in turns[start - 1 :]) <= room:
        start -= 1
    while start > 0 and turns[start].role == "tool":
        start -= 1
    return turns[max(0, start) :]
