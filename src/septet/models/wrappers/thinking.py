"""Moves the thinking that a model writes into its text (`<think>…</think>`) to the reasoning of the answer."""

import re
from collections.abc import AsyncGenerator

from msgspec.structs import replace

from septet.domain.messages import Answer, Delta, Request
from septet.models.faults import InvalidAnswer
from septet.models.wrappers.ask import Item, open_answer
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
