"""Stops a model that only repeats itself or explains its code: on a small machine that wastes time."""

import re
import time
from collections.abc import AsyncGenerator

from septet.domain.messages import Answer, Delta, Request, Usage
from septet.models.wrappers.streams import Item, open_answer
from septet.ports import Model

REPEATED_LINES = 7
"""This many lines of one shape in a row are a loop: tests of a small model rarely need more."""

TAIL, MAX_TAILS = 40, 5
"""A line that contains its last 40 characters 5 times is a loop too; a long line alone is not."""
VALUES = re.compile(r"'[^']*'|\"[^\"]*\"|\b(?:True|False|None)\b|[-+]?\d[\d.]*")
CHARACTERS_PER_TOKEN = 4


class EarlyStop:
    """The answer is the text so far. Its usage is estimated: a server reports the usage only of finished answers.

    Of several answers that are drawn at once none is stopped, for the others would be lost.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        started = time.monotonic()
        text = ""
        async with open_answer(self._model, request) as items:
            async for item in items:
                yield item
                if isinstance(item, Answer):
                    return
                if request.draws > 1:
                    continue
                text = "" if item.restarted else text + item.text
                if is_repeating(text, item) or is_complete(text, item):
                    break
        yield partial_answer(request, text, time.monotonic() - started)


def is_repeating(text: str, newest: Delta) -> bool:
    """Whether the text has begun to repeat itself, line by line or within a line."""
    if "\n" not in newest.text:
        line = text[text.rfind("\n") + 1 :]
        return bool(newest.text) and len(line) >= TAIL * MAX_TAILS and line.count(line[-TAIL:]) >= MAX_TAILS
    lines = text.split("\n")[-REPEATED_LINES - 1 : -1]
    shapes = {VALUES.sub("#", line) for line in lines}
    return len(lines) == REPEATED_LINES and len(shapes) == 1 and "#" in shapes.pop()


def is_complete(text: str, newest: Delta) -> bool:
    """Whether code and its tests are there and their block is closed: what follows would be an explanation."""
    if "\n" not in newest.text:
        return False
    code, _, after = text.rpartition("\n```")
    has_tests = "def test" in code or "\nassert " in code
    return has_tests and after.startswith("\n") and text.count("```") % 2 == 0


def partial_answer(request: Request, text: str, seconds: float) -> Answer:
    prompt_length = sum(len(message.text) for message in request.messages)
    usage = Usage(
        prompt=prompt_length // CHARACTERS_PER_TOKEN,
        completion=len(text) // CHARACTERS_PER_TOKEN,
        estimated=True,
    )
    return Answer(text=text, stop="length", usage=usage, seconds=seconds)
