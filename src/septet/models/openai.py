"""A model behind the OpenAI chat-completions wire: OpenAI itself and every compatible server."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from septet.domain.talk import Answer, Delta, Message, Request
from septet.models.credentials import Credentials
from septet.models.encoding import EncodedHistory, Loader, pictures
from septet.models.faults import Refused
from septet.models.openai_form import ENCODER, Reading, message_bytes, options
from septet.models.reading import deltas
from septet.models.wire import Wire

OPTIONAL = ("stream_options", "temperature", "max_tokens")
"""Parameters that some servers refuse by name and an answer does not depend on."""


class OpenAIModel:
    """`url` is the whole address of the chat completions; `load` gives images by their blob address."""

    def __init__(
        self, url: str, model: str, credentials: Credentials, wire: Wire, load: Loader | None = None
    ) -> None:
        self._url = url
        self._model = model
        self._credentials = credentials
        self._wire = wire
        self._load = load
        self._quirks: frozenset[str] = frozenset()
        self._history = EncodedHistory(self._encoded)

    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        while True:
            try:
                async with aclosing(self._ask(request)) as items:
                    async for item in items:
                        yield item
                return
            except Refused as refused:
                refusal = refused
            # Outside of the handler: nothing has been yielded yet, so asking again repeats nothing.
            self._learn(refusal)

    def _learn(self, refusal: Refused) -> None:
        """Remember what the server does not take, or give up."""
        quirk = next((name for name in OPTIONAL if name in refusal.cause and name not in self._quirks), None)
        if quirk is None:
            raise refusal
        self._quirks |= {quirk}

    async def _ask(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        body = await self._body(request)
        headers = await self._credentials()
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
        messages = await self._history.joined(request.role, request.messages)
        fields = ENCODER.encode(options(request, self._model, self._quirks))
        return b"".join((fields[:-1], b',"messages":[', messages, b"]}"))

    async def _encoded(self, before: Message | None, message: Message) -> bytes:
        encoded = message_bytes(message, await pictures(self._load, message))
        return encoded if before is None else b"," + encoded
