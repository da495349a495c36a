"""A model that answers from a recording: the same log in gives the same log out, at no cost."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

import anyio

from septet.common.documents import read_text
from septet.domain.codec import decode
from septet.domain.events import ModelAnswered, Recorded
from septet.domain.messages import Answer, Delta, Request
from septet.errors import BadConfig, SeptetError
from septet.models.providers.provider import Provider, free

Sleep = Callable[[float], Awaitable[None]]

WORDS = re.compile(r"\S+\s*|\s+")
TIMING = "?timing="


class ReplayModel:
    """With `sleep` each answer takes as long as the recorded one, word by word; without, it comes at once."""

    def __init__(self, recorded: Iterable[Recorded], name: str, sleep: Sleep | None = None) -> None:
        self.name = name
        self._sleep = sleep
        self.answers: dict[tuple[str, int], Answer] = {}
        for line in recorded:
            if isinstance(line.event, ModelAnswered):
                role = line.event.role
                step = 1 + sum(known == role for known, _ in self.answers)
                self.answers[role, step] = line.event.answer

    async def answer(self, request: Request) -> AsyncIterator[Delta | Answer]:
        recorded = self.answers.get((request.role, request.step))
        if recorded is None:
            cause = f"the recording {self.name} has no answer {request.step} of the {request.role}"
            raise BadConfig(cause, "the run differs from the recorded one")
        for seconds, piece in timed_deltas(recorded) if self._sleep else whole_deltas(recorded):
            if self._sleep is not None:
                await self._sleep(seconds)
            yield piece
        yield recorded


def whole_deltas(answer: Answer) -> Iterable[tuple[float, Delta]]:
    if answer.reasoning:
        yield 0.0, Delta(reasoning=answer.reasoning)
    yield 0.0, Delta(text=answer.text)


def timed_deltas(answer: Answer) -> Iterable[tuple[float, Delta]]:
    """The words of an answer, each after its share of the answer's time."""
    reasons, words = WORDS.findall(answer.reasoning), WORDS.findall(answer.text)
    share = answer.seconds / max(1, len(reasons) + len(words))
    for word in reasons:
        yield share, Delta(reasoning=word)
    for word in words:
        yield share, Delta(text=word)
    if not reasons and not words:
        yield answer.seconds, Delta()


def open_replay(rest: str) -> ReplayModel:
    """`FILE`, or `FILE?timing=original` for the recorded speed."""
    path, separator, timing = rest.partition(TIMING)
    if separator and timing not in ("original", "none"):
        raise BadConfig(f"there is no timing '{timing[:40]}'", f"write replay:FILE{TIMING}original or none")
    recording = load_recording(Path(path))
    return ReplayModel(recording, Path(path).name, anyio.sleep if timing == "original" else None)


def load_recording(path: Path) -> list[Recorded]:
    """The lines of a JSONL export; the closing `result` line of `--json` is skipped."""
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    return [decode(line) for line in lines if not line.startswith('{"type":"result"')]


def has_calls(rest: str) -> bool:
    """Whether who was recorded called tools; an unreadable recording is refused when it is opened."""
    try:
        recording = load_recording(Path(rest.partition(TIMING)[0]))
    except SeptetError:
        return False
    return any(isinstance(line.event, ModelAnswered) and line.event.answer.calls for line in recording)


PROVIDER = Provider(
    name_pattern="replay:FILE",
    about="a recording (--record FILE), played back",
    open=lambda endpoint, connections: open_replay(endpoint.model),
    billing=free,
    absolute=lambda rest: str(Path(rest).expanduser().absolute()),
    is_offline=True,
    has_tools=True,
    uses_tools=has_calls,
)
