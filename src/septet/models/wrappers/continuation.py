"""An answer that hit the model's longest length is gone on with until it is whole."""

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from septet.domain.messages import Answer, Delta, Message, Request
from septet.models.wrappers.argument_repair import add_usage
from septet.models.wrappers.ask import Item, open_answer
from septet.ports import Model

MOST_PARTS = 6
"""Of one answer; what is longer is handed on as cut."""
LONGEST_OVERLAP = 60
"""Lines that a model may say again before it goes on."""
GO_ON = (
    "Your answer reached the longest length and was cut here. Go on with the line that follows, exactly where it "
    "stopped: no greeting, nothing repeated, no new code fence."
)
BEGIN = "You reached the longest length before you had said anything. Think less, and answer now."


class Continuation:
    """The parts joined at whole lines. An answer with calls, by a schema or of a bounded length stays as it is."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        asked, before = request, None
        for part in range(1, MOST_PARTS + 1):
            said: Answer | None = None
            async with open_answer(self._model, asked) as items:
                async for item in items:
                    if isinstance(item, Answer):
                        said = joined(before, item)
                    else:
                        yield item
            if said is None:
                return
            if part == MOST_PARTS or not is_cut(request, said):
                yield said
                return
            before = replace(said, text=whole_lines(said.text))
            asked = continued(request, before)
            yield Delta()


def is_cut(request: Request, answer: Answer) -> bool:
    bounded = request.max_tokens is not None or request.schema is not None
    return answer.stop == "length" and not answer.calls and not bounded


def whole_lines(text: str) -> str:
    """The text up to its last line end: half a line is said again as a whole one."""
    return text[: text.rfind("\n") + 1] or text


def continued(request: Request, before: Answer) -> Request:
    if not before.text:
        return replace(request, messages=(*request.messages, Message(role="user", text=BEGIN)))
    said = Message(role="assistant", text=before.text.rstrip("\n"))
    return replace(request, messages=(*request.messages, said, Message(role="user", text=GO_ON)))


def joined(before: Answer | None, new: Answer) -> Answer:
    """The answer so far with what came next, and what both took."""
    if before is None:
        return new
    text = join_lines(before.text, new.text)
    reasoning = "\n".join(filter(None, [before.reasoning, new.reasoning]))
    return add_usage(before, replace(new, text=text, reasoning=reasoning))


def join_lines(before: str, after: str) -> str:
    """Both texts, without the lines that the second one says again, and without a fence that opens the block anew."""
    if not before.endswith("\n"):
        return before + after
    old, new = before.split("\n")[:-1], after.split("\n")
    if is_inside_block(old) and new[0].lstrip().startswith("```") and len(new[0].strip()) > len("```"):
        new = new[1:]
    most = min(len(old), len(new), LONGEST_OVERLAP)
    again = next((size for size in range(most, 0, -1) if is_repeated(old, new, size)), 0)
    return before + "\n".join(new[again:])


def is_repeated(old: list[str], new: list[str], size: int) -> bool:
    """One short line may well stand twice; a longer one, or several, are said again."""
    lines = old[-size:]
    return lines == new[:size] and len("".join(lines).strip()) >= 12  # e.g. `return None`


def is_inside_block(lines: list[str]) -> bool:
    return sum(line.lstrip().startswith(("```", "~~~")) for line in lines) % 2 == 1
