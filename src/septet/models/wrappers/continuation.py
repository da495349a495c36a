"""Makes answers whole: thinking in the text becomes reasoning, an answer cut at its length is continued."""

import re
from collections.abc import AsyncGenerator

from msgspec.structs import replace

from septet.domain.messages import Answer, Delta, Message, Request
from septet.models.faults import InvalidAnswer
from septet.models.wrappers.streams import Item, open_answer
from septet.models.wrappers.text_protocol import add_usage
from septet.ports import Model

OPENINGS = ("<think>", "<thinking>")
OPENING = re.compile(r"\s*<(?P<tag>think|thinking)>")
LATER = re.compile(r"^<(think|thinking)>.*?</\1>[ \t]*\n?", re.MULTILINE | re.DOTALL)
"""Thinking that begins at the start of a line, after the beginning of the answer."""
UNOPENED = re.compile(r"\A(?P<thought>.*?)^[ \t]*</think(?:ing)?>[ \t]*$", re.MULTILINE | re.DOTALL)
"""Some chat templates put the opening tag into the prompt: the answer has only the closing one."""
FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)


class ThinkTags:
    """Separates thinking from text, in the deltas and in the answer."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        stream = ThoughtStream()
        async with open_answer(self._model, request) as items:
            async for item in items:
                if isinstance(item, Answer):
                    yield without_thoughts(item)
                elif item.restarted:
                    stream = ThoughtStream()
                    yield item
                else:
                    yield stream.read(item)


class ThoughtStream:
    """Separates thinking at the beginning of an answer while it streams."""

    def __init__(self) -> None:
        self._pending = ""
        self._tag = ""
        self._is_text = False

    def read(self, delta: Delta) -> Delta:
        if self._is_text or not delta.text:
            return delta
        self._pending += delta.text
        if not self._tag:
            opening = OPENING.match(self._pending)
            if opening is None and may_open(self._pending):
                return replace(delta, text="")
            if opening is None:
                self._is_text = True
                return replace(delta, text=self._pending)
            self._tag, self._pending = f"</{opening['tag']}>", self._pending[opening.end() :]
        return self._thought(delta)

    def _thought(self, delta: Delta) -> Delta:
        thought, closing, text = self._pending.partition(self._tag)
        if closing:
            self._is_text = True
            return replace(delta, text=text.lstrip(), reasoning=delta.reasoning + thought)
        whole = len(self._pending) - partial_length(self._pending, self._tag)
        thought, self._pending = self._pending[:whole], self._pending[whole:]
        return replace(delta, text="", reasoning=delta.reasoning + thought)


def may_open(text: str) -> bool:
    start = text.lstrip()
    return any(tag.startswith(start) for tag in OPENINGS)


def partial_length(text: str, tag: str) -> int:
    """The number of characters at the end of a text that may be the beginning of a tag."""
    return next((size for size in range(len(tag) - 1, 0, -1) if text.endswith(tag[:size])), 0)


def without_thoughts(answer: Answer) -> Answer:
    """The answer with its thinking as reasoning. Raises InvalidAnswer if it finished normally without other text."""
    if answer.others:
        answer = replace(answer, others=tuple(split_thoughts(other)[0] for other in answer.others))
    text, thoughts = split_thoughts(answer.text)
    if not thoughts:
        return answer
    if not text and not answer.calls and answer.stop == "finished":
        raise InvalidAnswer("the answer contains nothing but thinking")
    reasoning = "\n".join(filter(None, [answer.reasoning, *thoughts]))
    return replace(answer, text=text, reasoning=reasoning)


def split_thoughts(text: str) -> tuple[str, list[str]]:
    """The text without the thinking, and the thinking: at its beginning, or on lines of its own outside code blocks."""
    thoughts: list[str] = []
    while match := OPENING.match(text):
        thought, _, text = text[match.end() :].partition(f"</{match['tag']}>")
        thoughts.append(thought.strip())
    if not thoughts and "<think" not in text and (match := UNOPENED.match(text)):
        thoughts.append(match["thought"].strip())
        text = text[match.end() :]
    for match in reversed(list(LATER.finditer(text))):
        if len(FENCE.findall(text[: match.start()])) % 2 == 0:
            thoughts.append(match[0].strip())
            text = text[: match.start()] + text[match.end() :]
    return (text.strip() if thoughts else text), [thought for thought in thoughts if thought]


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
    text = join_continuation(before.text, new.text)
    reasoning = "\n".join(filter(None, [before.reasoning, new.reasoning]))
    return add_usage(before, replace(new, text=text, reasoning=reasoning))


def join_continuation(before: str, after: str) -> str:
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
