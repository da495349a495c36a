"""Thoughts that a model writes into its text: they are reasoning, and never part of the answer."""

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
"""Thoughts that begin a line."""
UNOPENED = re.compile(r"\A(?P<thought>.*?)^[ \t]*</think(?:ing)?>[ \t]*$", re.MULTILINE | re.DOTALL)
"""Some templates open the thoughts in the prompt: the answer holds only the line that closes them."""
FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)


class ThinkTags:
    """The answer without `<think>…</think>`, which goes where reasoning is kept."""

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
    """Thoughts at the head of an answer, told apart while they come in."""

    def __init__(self) -> None:
        self._held = ""
        self._tag = ""
        self._is_text = False

    def read(self, delta: Delta) -> Delta:
        if self._is_text or not delta.text:
            return delta
        self._held += delta.text
        if not self._tag:
            found = OPENING.match(self._held)
            if found is None and may_open(self._held):
                return replace(delta, text="")
            if found is None:
                self._is_text = True
                return replace(delta, text=self._held)
            self._tag, self._held = f"</{found['tag']}>", self._held[found.end() :]
        return self._thought(delta)

    def _thought(self, delta: Delta) -> Delta:
        thought, closing, text = self._held.partition(self._tag)
        if closing:
            self._is_text = True
            return replace(delta, text=text.lstrip(), reasoning=delta.reasoning + thought)
        whole = len(self._held) - partial_length(self._held, self._tag)
        thought, self._held = self._held[:whole], self._held[whole:]
        return replace(delta, text="", reasoning=delta.reasoning + thought)


def may_open(text: str) -> bool:
    head = text.lstrip()
    return any(tag.startswith(head) for tag in OPENINGS)


def partial_length(text: str, tag: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    return next((size for size in range(len(tag) - 1, 0, -1) if text.endswith(tag[:size])), 0)


def without_thoughts(answer: Answer) -> Answer:
    """The answer with its thoughts kept apart. Raises InvalidAnswer where it ended as usual and is nothing else."""
    text, thoughts = split_thoughts(answer.text)
    if not thoughts:
        return answer
    if not text and not answer.calls and answer.stop == "finished":
        raise InvalidAnswer("the answer holds nothing but thoughts")
    reasoning = "\n".join(filter(None, [answer.reasoning, *thoughts]))
    return replace(answer, text=text, reasoning=reasoning)


def split_thoughts(text: str) -> tuple[str, list[str]]:
    """What a text says, and the thoughts in it: at its head, or on lines of their own outside of code."""
    thoughts: list[str] = []
    while found := OPENING.match(text):
        thought, _, text = text[found.end() :].partition(f"</{found['tag']}>")
        thoughts.append(thought.strip())
    if not thoughts and "<think" not in text and (found := UNOPENED.match(text)):
        thoughts.append(found["thought"].strip())
        text = text[found.end() :]
    for found in reversed(list(LATER.finditer(text))):
        if len(FENCE.findall(text[: found.start()])) % 2 == 0:
            thoughts.append(found[0].strip())
            text = text[: found.start()] + text[found.end() :]
    return (text.strip() if thoughts else text), [thought for thought in thoughts if thought]
