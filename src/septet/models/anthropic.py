"""A model behind the Anthropic messages wire."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from septet.domain.talk import Answer, Delta, Message, Request
from septet.models.anthropic_form import ENCODER, KEPT, MAX_TOKENS, Reading, blocks_of, options, speaker
from septet.models.credentials import Credentials
from septet.models.encoding import EncodedHistory, Loader, pictures
from septet.models.reading import deltas
from septet.models.wire import Wire

VERSION = "2023-06-01"


class AnthropicModel:
    """`url` is the whole address of the messages; `load` gives images by their blob address."""

    def __init__(
        self, url: str, model: str, credentials: Credentials, wire: Wire, load: Loader | None = None
    ) -> None:
        self._url = url
        self._model = model
        self._credentials = credentials
        self._wire = wire
        self._load = load
        self._history = EncodedHistory(self._encoded)

    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        body = await self._body(request)
        headers = {"anthropic-version": VERSION, **await self._credentials()}
        started = time.monotonic()
        reading = Reading()
        async with (
            self._wire.post(self._url, headers, body) as incoming,
            aclosing(deltas(incoming, reading)) as pieces,
        ):
            async for delta in pieces:
                yield delta
        yield reading.answer(self._model, time.monotonic() - started)

    async def _body(self, request: Request) -> bytes:
        said = tuple(message for message in request.messages if message.role != "system")
        head = ENCODER.encode(options(request, self._model, MAX_TOKENS))[:-1] + b',"messages":['
        match said:
            case (*earlier, last):
                before = earlier[-1] if earlier else None
                history = await self._history.joined(request.role, tuple(earlier))
                return b"".join((head, history, await self._content(before, last, kept=True), b"]}]}"))
            case _:
                return head + b"]}"

    async def _encoded(self, before: Message | None, message: Message) -> bytes:
        return await self._content(before, message, kept=False)

    async def _content(self, before: Message | None, message: Message, kept: bool) -> bytes:
        """The blocks of a message; those of one speaker in a row are one message, closed by the next."""
        blocks = blocks_of(message, await pictures(self._load, message))
        if kept:
            blocks[-1]["cache_control"] = KEPT
        inner = ENCODER.encode(blocks)[1:-1]
        who = speaker(message)
        if before is not None and speaker(before) == who:
            return b"," + inner
        opening = b'{"role":"%b","content":[' % who.encode()
        return (b"]}," if before is not None else b"") + opening + inner
