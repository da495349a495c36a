"""Questions that are asked at the same time: each with its own step, and only one of them heard."""

from collections.abc import AsyncIterator

import anyio
import pytest
from msgspec.structs import replace

from septet.agents.ask import live_topic
from septet.domain.messages import Answer, Delta, Message, Request, estimate_usage
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec
from septet.errors import ModelFailed, Overdrawn
from septet.runtime.bus import MemoryBus
from septet.ways.iterate.best_of_n import Asker, ask_together

pytestmark = pytest.mark.anyio

CODER = RoleSpec(name="coder", role="coder")
MESSAGES = (Message(role="user", text="go"),)


class Rendezvous:
    """A model that answers only when `crowd` questions are there at once; some steps fail."""

    def __init__(self, crowd: int, failing: tuple[int, ...] = ()) -> None:
        self._crowd = crowd
        self._failing = failing
        self._here = 0
        self._all_here = anyio.Event()

    async def answer(self, request: Request) -> AsyncIterator[Delta | Answer]:
        self._here += 1
        if self._here == self._crowd:
            self._all_here.set()
        await self._all_here.wait()
        if request.step in self._failing:
            raise ModelFailed(f"step {request.step} failed")
        yield Delta(text=f"piece {request.step}")
        yield Answer(text=f"{request.step} at {request.temperature}")


async def asked(model: Rendezvous, bus: MemoryBus, tokens: int | None = None) -> list[str]:
    askers = [Asker(member=CODER), Asker(member=replace(CODER, temperature=0.8))]
    with anyio.fail_after(120):
        said = await ask_together(askers, MESSAGES, model, bus, State(chat="c", budget=Budget(tokens=tokens)))
    return [one.answer.text for one in said]


async def test_all_are_asked_at_once_and_come_back_in_order() -> None:
    assert await asked(Rendezvous(2), MemoryBus()) == ["1 at None", "2 at 0.8"]


async def test_only_the_first_is_heard_while_it_is_made() -> None:
    bus = MemoryBus()
    async with bus.subscribe(live_topic("c")) as heard:
        await asked(Rendezvous(2), bus)
        await bus.publish(live_topic("c"), b"the end")
        told = [(await anext(heard)).message for _ in range(2)]
    assert b"piece 1" in told[0]
    assert told[1] == b"the end"


@pytest.mark.parametrize(("failing", "left"), [((1,), ["2 at 0.8"]), ((2,), ["1 at None"])])
async def test_what_came_is_used_although_another_failed(failing: tuple[int, ...], left: list[str]) -> None:
    assert await asked(Rendezvous(2, failing), MemoryBus()) == left


async def test_when_all_fail_the_error_is_as_usual() -> None:
    with pytest.raises(ModelFailed, match="failed"):
        await asked(Rendezvous(2, (1, 2)), MemoryBus())


async def test_those_whom_no_budget_would_do_for_are_not_asked() -> None:
    each = estimate_usage(Request(role="coder", step=1, messages=MESSAGES)).total
    assert await asked(Rendezvous(2), MemoryBus(), tokens=2 * each) == ["1 at None", "2 at 0.8"]
    assert await asked(Rendezvous(1), MemoryBus(), tokens=2 * each - 1) == ["1 at None"]
    with pytest.raises(Overdrawn, match="budget is too small for the coder's next turn"):
        await asked(Rendezvous(1), MemoryBus(), tokens=each - 1)
