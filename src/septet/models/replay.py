"""A model that answers from a recorded chat: the same log in gives the same log out, and nothing is paid."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from septet.domain.codec import decode
from septet.domain.events import ModelAnswered, Recorded
from septet.domain.talk import Answer, Delta, Request
from septet.errors import BadConfig
from septet.tools.documents import read_text


class ReplayModel:
    def __init__(self, recorded: Iterable[Recorded], name: str) -> None:
        self.name = name
        self.answers: dict[tuple[str, int], Answer] = {}
        for one in recorded:
            if isinstance(one.event, ModelAnswered):
                role = one.event.role
                step = 1 + sum(known == role for known, _ in self.answers)
                self.answers[role, step] = one.event.answer

    async def answer(self, request: Request) -> AsyncIterator[Delta | Answer]:
        found = self.answers.get((request.role, request.step))
        if found is None:
            cause = f"the recording {self.name} has no answer {request.step} of the {request.role}"
            raise BadConfig(cause, "the run goes another way than the recorded one did")
        if found.reasoning:
            yield Delta(reasoning=found.reasoning)
        yield Delta(text=found.text)
        yield found


def load_recording(path: Path) -> list[Recorded]:
    """The lines of a JSONL export; the closing `result` line of `--json` is skipped."""
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    return [decode(line) for line in lines if not line.startswith('{"type":"result"')]
