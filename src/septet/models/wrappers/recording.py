"""Observers of a model: DebugTap reports every request, Recording stores every answer for `replay:FILE`."""

import time
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path

from anyio import to_thread

from septet.domain.codec import encode
from septet.domain.events import ModelAnswered, Recorded
from septet.domain.messages import Answer, Request
from septet.errors import BadUsage
from septet.models.wrappers.streams import Item, open_answer
from septet.ports import Model

REDACTED = "[redacted]"
MIN_SECRET_LENGTH = 6


RequestListener = Callable[[Request], None]


class DebugTap:
    """Passes each request to a listener. Requests contain no keys."""

    def __init__(self, model: Model, listen: RequestListener) -> None:
        self._model = model
        self._listen = listen

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        self._listen(request)
        async with open_answer(self._model, request) as items:
            async for item in items:
                yield item


class RecordingFile:
    """The file of a recording, shared by all models of a chat and emptied at the start. Secrets are redacted."""

    def __init__(self, path: Path, secrets: Iterable[str]) -> None:
        self._path = path
        self._secrets = sorted(
            (secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH), key=len, reverse=True
        )
        self._count = 0
        try:
            path.write_bytes(b"")
        except OSError as error:
            raise BadUsage(f"{path} cannot be written: {error.strerror}", "name another file") from error

    async def add(self, role: str, answer: Answer) -> None:
        self._count += 1
        event = ModelAnswered(role=role, answer=answer)
        line = encode(Recorded(chat="recording", seq=self._count, at=time.time(), event=event)).decode()
        for secret in self._secrets:
            line = line.replace(secret, REDACTED)
        await to_thread.run_sync(self._append, line)

    def _append(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


class Recording:
    """Writes each answer to the file before passing it on."""

    def __init__(self, model: Model, file: RecordingFile) -> None:
        self._model = model
        self._file = file

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        async with open_answer(self._model, request) as items:
            async for item in items:
                if isinstance(item, Answer):
                    await self._file.add(request.role, item)
                yield item
