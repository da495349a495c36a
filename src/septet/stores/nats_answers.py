"""Questions to the server: one subscription hears all answers, because subscribing for each would cost more."""

import asyncio
from collections.abc import Callable
from itertools import count

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.wires.ears import listen

ANSWER = 2.0
"""Seconds for one answer of the server; how often to try again is the caller's choice."""
GLANCE = 0.25

Whole = Callable[[Msg], bool]
"""Whether an answer is complete with this message."""


class Waiting:
    """One who has asked and not heard everything yet."""

    def __init__(self, whole: Whole, loop: asyncio.AbstractEventLoop) -> None:
        self._whole = whole
        self._heard: list[Msg] = []
        self._until = loop.time() + ANSWER
        self.answer: asyncio.Future[list[Msg]] = loop.create_future()

    def hear(self, message: Msg) -> None:
        self._heard.append(message)
        if self._whole(message) and not self.answer.done():
            self.answer.set_result(self._heard)

    def look_at(self, clock: float) -> None:
        if clock > self._until and not self.answer.done():
            self.answer.set_exception(nats.errors.TimeoutError())


class Answers:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = ""
        self._numbers = count()
        self._waiting: dict[str, Waiting] = {}
        self._clock: asyncio.TimerHandle | None = None

    async def ask(self, subject: str, body: bytes, headers: dict[str, str] | None = None) -> Msg:
        """The one message that answers. Raises an error of the client."""
        (answer,) = await self.ask_for_many(subject, body, lambda _: True, headers)
        if answer.headers and answer.headers.get("Status") == "503":
            raise nats.errors.NoRespondersError
        return answer

    async def ask_for_many(
        self, subject: str, body: bytes, whole: Whole, headers: dict[str, str] | None = None
    ) -> list[Msg]:
        """All messages that answer, the one that completes them last."""
        if not self._inbox:
            self._inbox = self._client.new_inbox()
            await listen(self._client, f"{self._inbox}.*", self._hear)
        loop = asyncio.get_running_loop()
        name, waiting = str(next(self._numbers)), Waiting(whole, loop)
        if self._clock is None:
            self._clock = loop.call_later(GLANCE, self._look, loop)
        self._waiting[name] = waiting
        try:
            await self._client.publish(subject, body, reply=f"{self._inbox}.{name}", headers=headers)
            return await waiting.answer
        finally:
            del self._waiting[name]

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """One clock for all who wait: a timer for each would cost more than what it watches."""
        for waiting in self._waiting.values():
            waiting.look_at(loop.time())
        self._clock = loop.call_later(GLANCE, self._look, loop) if self._waiting else None

    def _hear(self, message: Msg) -> None:
        if waiting := self._waiting.get(message.subject.rsplit(".", 1)[1]):
            waiting.hear(message)
