"""Several questions to one model at the same time: a server with slots answers two in less time than twice one."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager

import anyio
from msgspec.structs import replace

from septet.agents.asking import ask, request_of
from septet.domain.events import ModelAnswered
from septet.domain.reduce import charged
from septet.domain.state import State
from septet.domain.talk import Message
from septet.domain.teams import RoleSpec
from septet.errors import SeptetError
from septet.ports import Bus, Model, Said
from septet.team.budgets import expected_spending


class Hushed:
    """A bus that tells nobody: two answers that are made at once would be one muddle to a watcher."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def publish(self, topic: str, message: bytes, by: str = "") -> None:
        return None

    def subscribe(self, topic: str) -> AbstractAsyncContextManager[AsyncIterator[Said]]:
        return self._bus.subscribe(topic)


async def ask_together(
    askers: Sequence[RoleSpec], model: Model, bus: Bus, state: State, messages: tuple[Message, ...]
) -> list[ModelAnswered]:
    """An answer for each of the askers, who are one member in different moods; only the first is heard.

    What failed is left out as long as something came, and so is what no budget would do for. A crash in
    between loses what was answered already: not for models that cost money.
    """
    came: dict[int, ModelAnswered] = {}
    errors: list[SeptetError] = []

    async def ask_one(place: int, asker: RoleSpec) -> None:
        ahead = as_if_answered(asker, state, messages, place)
        try:
            came[place] = await ask(asker, model, Hushed(bus) if place else bus, ahead, messages)
        except SeptetError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for place, asker in enumerate(askers):
            tasks.start_soon(ask_one, place, asker)
    if not came:
        raise errors[0]
    return [came[place] for place in sorted(came)]


def as_if_answered(asker: RoleSpec, state: State, messages: tuple[Message, ...], times: int) -> State:
    """What those who were asked at the same moment will have taken is taken already."""
    for _ in range(times):
        more = expected_spending(state, asker.name, request_of(asker, state, messages))
        state = replace(state, spending=charged(state, asker.name, more))
    return state
