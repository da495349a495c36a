"""Continues an answer that reached the model's maximum length until it is complete."""

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from septet.domain.messages import Answer, Delta, Message, Request
from septet.models.wrappers.argument_repair import add_usage
from septet.models.wrappers.ask import Item, open_answer
from septet.ports import Model

MAX_PARTS = 6
"""An answer with more parts is passed on truncated."""
MAX_OVERLAP_LINES = 60
"""How many lines a model may repeat before it continues."""
CONTINUE = (
    "Your answer reached the maximum length and was cut here. Continue with the next line, exactly where it stopped: "
    "no greeting, nothing repeated, no new code fence."
)
ANSWER_NOW = "You reached the maximum length before you wrote an answer. Think less, and answer now."


class Continuation:
    """Joins the parts at whole lines. Leaves answers with tool calls, a schema or a requested maximum length alone."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        next_request, before = request, None
        for part in range(1, MAX_PARTS + 1):
            answer: Answer | None = None
            async with open_answer(self._model, next_request) as items:
                async for item in items:
                    if isinstance(item, Answer):
                        answer = join_answers(before, item)
                    else:
                        yield item
            if answer is None:
                return
            if part == MAX_PARTS or not is_truncated(request, answer):
                yield answer
                return
            before = replace(answer, text=whole_lines(answer.text))
            next_request = continuation_request(request, before)
            yield Delta()


def is_truncated(request: Request, answer: Answer) -> bool:
    is_restricted = request.max_tokens is not None or request.schema is not None
    return answer.stop == "length" and not answer.calls and not is_restricted


def whole_lines(text: str) -> str:
    """The text up to its last line end; the model writes an incomplete last line again."""
    return text[: text.rfind("\n") + 1] or text


def continuation_request(request: Request, before: Answer) -> Request:
    if not before.text:
        return replace(request, messages=(*request.messages, Message(role="user", text=ANSWER_NOW)))
    so_far = Message(role="assistant", text=before.text.rstrip("\n"))
    return replace(request, messages=(*request.messages, so_far, Message(role="user", text=CONTINUE)))


def join_answers(before: Answer | None, new: Answer) -> Answer:
    """The answer so far and the next part as one answer, with the usage of both."""
    if before is None:
        return new
    text = join_lines(before.text, new.text)
    reasoning = "\n".join(filter(None, [before.reasoning, new.reasoning]))
    return add_usage(before, replace(new, text=text, reasoning=reasoning))


def join_lines(before: str, after: str) -> str:
    """Join two texts, without the lines that the second repeats and without a fence that opens the block again."""
    if not before.endswith("\n"):
        return before + after
    old, new = before.split("\n")[:-1], after.split("\n")
    if is_inside_block(old) and new[0].lstrip().startswith("```") and len(new[0].strip()) > len("```"):
        new = new[1:]
    max_overlap = min(len(old), len(new), MAX_OVERLAP_LINES)
    repeated = next((size for size in range(max_overlap, 0, -1) if is_repeated(old, new, size)), 0)
    return before + "\n".join(new[repeated:])


def is_repeated(old: list[str], new: list[str], size: int) -> bool:
    """Whether the last `size` lines are repeated. One short line may well occur twice; that is no repetition."""
    lines = old[-size:]
    return lines == new[:size] and len("".join(lines).strip()) >= 12  # e.g. `return None`


def is_inside_block(lines: list[str]) -> bool:
    return sum(line.lstrip().startswith(("```", "~~~")) for line in lines) % 2 == 1
