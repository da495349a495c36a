"""How often a model is asked again, how long it waits before, and what the person is told of it."""

from collections.abc import AsyncGenerator

import anyio
import pytest
from models.asking import question
from msgspec.structs import replace

from septet.domain.messages import Answer, Delta
from septet.models.faults import RateLimited, ServerError, TimedOut, TransientFault
from septet.models.wrappers.retry import Fallback, RequestTimeout, Retry, RetryPolicy
from septet.models.wrappers.streams import Item

pytestmark = pytest.mark.anyio


class Failing:
    """A model that fails some times, each time after a piece of text, before it answers."""

    def __init__(self, *faults: TransientFault, piece: str = "") -> None:
        self._faults = [*faults]
        self._piece = piece
        self.asked = 0

    async def answer(self, request: object) -> AsyncGenerator[Item, None]:
        self.asked += 1
        yield Delta(text=self._piece)
        if self._faults:
            raise self._faults.pop(0)
        yield Answer(text="done", model="m")


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slept: list[float] = []
        self.now = 1000.0
        monkeypatch.setattr("septet.models.wrappers.retry.anyio.sleep", self._sleep)
        monkeypatch.setattr("septet.models.wrappers.retry.now", lambda: self.now)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def fail(seconds: float | None = None) -> TransientFault:
    return ServerError("down") if seconds is None else RateLimited("busy", seconds)


async def all_items(model: Retry | Fallback | RequestTimeout) -> list[Item]:
    return [item async for item in model.answer(question("go"))]


def retry(model: Failing, told: list[str], **policy: float) -> Retry:
    fields = {"first_wait": 1.0, "max_wait": 4.0, **policy}
    limits = RetryPolicy(
        total_seconds=fields.get("total_seconds", 100.0),
        attempts=int(fields.get("attempts", 8)),
        first_wait=fields["first_wait"],
        max_wait=fields["max_wait"],
    )
    return Retry(model, limits, told.append, chance=lambda: 1.0)


async def test_it_is_asked_as_often_as_allowed_and_no_more(clock: Clock) -> None:
    enough = Failing(*[fail()] * 2)
    assert (await all_items(retry(enough, [], attempts=3)))[-1] == Answer(text="done", model="m")
    too_few = Failing(*[fail()] * 3)
    with pytest.raises(ServerError):
        await all_items(retry(too_few, [], attempts=3))
    assert (enough.asked, too_few.asked, clock.slept) == (3, 3, [1.0, 2.0, 1.0, 2.0])


async def test_waits_are_told_except_a_first_short_one(clock: Clock) -> None:
    told: list[str] = []
    await all_items(retry(Failing(fail(), fail(), fail()), told, first_wait=2.0))
    assert told == [
        "no answer yet (down); next attempt in 4 s",
        "no answer yet (down); next attempt in 4 s",
    ]
    await all_items(retry(Failing(fail(2.0)), told))
    assert told[2:] == ["no answer yet (busy); next attempt in 2 s"], "2.2 s are more than a short wait"
    await all_items(retry(Failing(fail(), fail()), told, first_wait=0.5))
    assert told[3:] == ["no answer yet (down); next attempt in 1 s"], "the second wait is told, short or not"
    assert clock.slept == [2.0, 4.0, 4.0, 2.2, 0.5, 1.0]


async def test_a_wait_may_end_at_the_deadline_and_not_after_it(clock: Clock) -> None:
    await all_items(retry(Failing(fail()), [], first_wait=4.0, total_seconds=4.0))
    late = Failing(fail())
    with pytest.raises(ServerError):
        await all_items(retry(late, [], first_wait=4.0, total_seconds=3.5))
    assert (late.asked, clock.slept) == (1, [4.0])


async def test_text_that_was_shown_is_voided_before_the_next_attempt(clock: Clock) -> None:
    shown = await all_items(retry(Failing(fail(), piece="a"), []))
    assert shown == [Delta(text="a"), Delta(restarted=True), Delta(text="a"), Answer(text="done", model="m")]
    silent = await all_items(retry(Failing(fail()), []))
    assert silent == [Delta(), Delta(), Answer(text="done", model="m")]
    assert len(clock.slept) == 2


async def test_the_next_model_answers_and_the_person_is_told_which() -> None:
    told: list[str] = []
    models = [("one", Failing(fail(), piece="a")), ("two", Failing(fail(3.0))), ("three", Failing())]
    items = await all_items(Fallback(models, told.append))
    assert items == [
        Delta(text="a"),
        Delta(restarted=True),
        Delta(),
        Delta(),
        Answer(text="done", model="m"),
    ]
    assert told == ["one failed (down); two answers instead", "two failed (busy); three answers instead"]
    with pytest.raises(RateLimited):
        await all_items(Fallback([("one", Failing(fail())), ("two", Failing(fail(3.0)))], told.append))


def test_the_waits_of_a_policy() -> None:
    policy = RetryPolicy(first_wait=1.0, max_wait=8.0)
    assert [policy.wait(number, fail(), 1.0) for number in range(1, 6)] == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert [policy.wait(number, fail(), 0.0) for number in range(1, 6)] == [0.5, 1.0, 2.0, 4.0, 4.0]
    assert policy.wait(1, fail(0.0), 1.0) == 0.0, "the server says to come at once"
    assert policy.wait(1, fail(100.0), 1.0) == 101.0
    assert policy.wait(3, fail(10.0), 1.0) == 11.0
    assert policy.wait(1, RateLimited("busy"), 1.0) == 1.0


class Silent:
    async def answer(self, request: object) -> AsyncGenerator[Item, None]:
        yield Delta(text="a")
        await anyio.sleep_forever()


async def test_a_request_with_its_own_time_ends_after_it() -> None:
    items = RequestTimeout(Silent()).answer(replace(question("go"), timeout=0.01))
    assert await anext(items) == Delta(text="a")
    with pytest.raises(TimedOut, match=r"no complete answer within 0\.01 s"):
        await anext(items)
    whole = RequestTimeout(Failing())
    answers = [
        [item async for item in whole.answer(replace(question("go"), timeout=one))] for one in (None, 60.0)
    ]
    assert answers == [[Delta(), Answer(text="done", model="m")]] * 2
