"""Shortens a request that does not fit the model's context, and asks again."""

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from septet.common.text import cut_middle
from septet.domain.messages import Message, Request
from septet.models.faults import ContextExceeded
from septet.models.wrappers.streams import Item, ShownDeltas, open_answer
from septet.ports import Model

SHARES = (0.6, 0.35, 0.2, 0.1)
"""The share of the text that is kept, attempt by attempt."""

LEFT_OUT = "\n… {} left out to fit the model's context …\n"
EARLIER = Message(role="user", text="(earlier messages are left out to fit the model's context)")


class ContextLimit:
    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        shown = ShownDeltas()
        for share in (1.0, *SHARES):
            smaller = shorten_request(request, share)
            try:
                async with open_answer(self._model, smaller) as items:
                    async for item in items:
                        shown.add(item)
                        yield item
                return
            except ContextExceeded as error:
                fault = error
            if share == SHARES[-1]:
                raise fault
            for delta in shown.restart():
                yield delta


def shorten_request(request: Request, share: float) -> Request:
    """The request cut to a share of its length: first older messages are dropped, then the middle of long texts.

    The system prompt stays whole, and so does the end of the newest message.
    """
    if share >= 1.0:
        return request
    system = tuple(message for message in request.messages if message.role == "system")
    turns = request.messages[len(system) :]
    budget = int(share * sum(len(message.text) for message in turns))
    kept = newest_messages(turns, budget)
    limit = max(200, budget // max(1, len(kept)))
    shortened = tuple(replace(message, text=cut_middle(message.text, limit, LEFT_OUT)) for message in kept)
    notice = (EARLIER,) if len(kept) < len(turns) else ()
    return replace(request, messages=(*system, *notice, *shortened))


def newest_messages(turns: tuple[Message, ...], budget: int) -> tuple[Message, ...]:
    """The last messages that fit, and always the very last; a tool's result is never kept without its call."""
    start = len(turns) - 1
    while start > 0 and sum(len(message.text) for message in turns[start - 1 :]) <= budget:
        start -= 1
    while start > 0 and turns[start].role == "tool":
        start -= 1
    return turns[max(0, start) :]
