"""Asks once more when a tool call's arguments are not a JSON object; never guesses or evaluates them."""

from collections.abc import AsyncGenerator

import msgspec
from msgspec.structs import replace

from septet.domain.messages import Answer, Message, Request, ToolCall
from septet.models.faults import DECODE_ERRORS
from septet.models.wrappers.ask import Item, open_answer
from septet.ports import Model

BROKEN = "The arguments of this call are not a JSON object ({}). Nothing was done. Send the whole call again."
TRUNCATED = (
    "Your answer reached the maximum length inside this call and was cut. Nothing was done. Send less in one call: "
    "a long file in several steps, its beginning first."
)
RESEND_VALID = "Nothing was done, because another call was broken. Send this call again too."


class ArgumentRepair:
    """If the second answer is broken too, it is passed on unchanged; the tool registry refuses the call."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        first: Answer | None = None
        async with open_answer(self._model, request) as items:
            async for item in items:
                if isinstance(item, Answer) and has_broken_call(item):
                    first = item
                else:
                    yield item
        if first is not None:
            async with open_answer(self._model, argument_repair_request(request, first)) as items:
                async for item in items:
                    yield add_usage(first, item) if isinstance(item, Answer) else item


def has_broken_call(answer: Answer) -> bool:
    return any(arguments_error(call) for call in answer.calls)


def arguments_error(call: ToolCall) -> str:
    """What is wrong with the arguments of a call; empty if they are valid."""
    try:
        msgspec.json.decode(call.arguments or "{}", type=dict[str, object])
    except DECODE_ERRORS as error:
        return str(error)
    return ""


def argument_repair_request(request: Request, answer: Answer) -> Request:
    """The same request, followed by the broken calls and their errors."""
    reply = Message(
        role="assistant", text=answer.text, calls=tuple(quote_broken(call) for call in answer.calls)
    )
    is_truncated = answer.stop == "length"
    results = [
        Message(role="tool", text=error_message(call, is_truncated), call=call.id) for call in answer.calls
    ]
    return replace(request, messages=(*request.messages, reply, *results))


def error_message(call: ToolCall, is_truncated: bool) -> str:
    error = arguments_error(call)
    return (TRUNCATED if is_truncated else BROKEN.format(error)) if error else RESEND_VALID


def quote_broken(call: ToolCall) -> ToolCall:
    """Quote broken arguments, because some servers refuse a history that contains them."""
    if not arguments_error(call):
        return call
    return replace(call, arguments=msgspec.json.encode({"unreadable": call.arguments}).decode())


def add_usage(first: Answer, second: Answer) -> Answer:
    return replace(second, usage=first.usage.plus(second.usage), seconds=first.seconds + second.seconds)
