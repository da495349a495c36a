"""Agents for the tests of AutoGen's runtime, and runtimes that are processes of their own as far as they can tell."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from autogen_core import MessageContext, RoutedAgent, default_subscription, message_handler
from pydantic import BaseModel

from septet.autogen import Runtime
from septet.cluster.server import NatsServer


@dataclass
class Word:
    text: str


@dataclass
class Question:
    number: int


class Answer(BaseModel):
    number: int
    by: str


class Heard:
    """What agents have heard, in order."""

    def __init__(self) -> None:
        self.words: list[tuple[str, str]] = []
        self._changed = anyio.Event()

    def note(self, agent: object, text: str) -> None:
        self.words.append((str(agent), text))
        self._changed.set()

    async def wait(self, number: int) -> list[tuple[str, str]]:
        with anyio.fail_after(120):
            while len(self.words) < number:
                self._changed = anyio.Event()
                await self._changed.wait()
        return self.words


class Listener(RoutedAgent):
    """Notes each word that it hears."""

    def __init__(self, heard: Heard) -> None:
        super().__init__("notes what it hears")
        self._heard = heard

    @message_handler
    async def on_word(self, message: Word, ctx: MessageContext) -> None:
        await self.hear(message.text)

    async def hear(self, text: str) -> None:
        self._heard.note(self.id, text)


@default_subscription
class DefaultListener(Listener):
    pass


class Oracle(RoutedAgent):
    """Answers questions with the double; a negative one is a mistake, zero takes for ever."""

    def __init__(self) -> None:
        super().__init__("doubles numbers")
        self.asked = 0
        self.cancelled = 0

    @message_handler
    async def on_question(self, message: Question, ctx: MessageContext) -> Answer:
        self.asked += 1
        if message.number < 0:
            raise KeyError("no such number", message.number)
        if message.number == 0:
            await self._wait_for_ever(ctx)
        return await self.answer(message.number)

    async def answer(self, number: int) -> Answer:
        return Answer(number=2 * number, by=str(self.id))

    async def _wait_for_ever(self, ctx: MessageContext) -> None:
        try:
            await ctx.cancellation_token.link_future(asyncio.get_running_loop().create_future())
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def save_state(self) -> dict[str, Any]:
        return {"asked": self.asked}

    async def load_state(self, state: Any) -> None:
        self.asked = state["asked"]


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(120):
        while not condition():  # noqa: ASYNC110  agents announce nothing
            await anyio.sleep(0.01)


def address_of(server: NatsServer) -> str:
    return server.endpoint.address.replace("//", f"//{server.token}@")


@asynccontextmanager
async def started(server: NatsServer, **options: Any) -> AsyncGenerator[Runtime]:
    async with Runtime(address_of(server), **options) as runtime:
        yield runtime
