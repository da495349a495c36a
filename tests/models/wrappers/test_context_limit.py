"""What is left of a request that does not fit: the system prompt, the newest messages, calls with their results."""

from collections.abc import AsyncGenerator

import pytest
from msgspec.structs import replace

from septet.domain.messages import Answer, Delta, Message, Request, ToolCall
from septet.models.faults import ContextExceeded
from septet.models.wrappers.context_limit import EARLIER, ContextLimit, newest_messages, shorten_request
from septet.models.wrappers.streams import Item

SYSTEM = Message(role="system", text="s" * 500)


def user(text: str) -> Message:
    return Message(role="user", text=text)


def request(*turns: Message) -> Request:
    return Request(role="coder", step=1, messages=(SYSTEM, *turns))


CALL = Message(role="assistant", text="call", calls=(ToolCall(id="c", name="read", arguments="{}"),))
RESULT = Message(role="tool", text="r" * 10, call="c")


@pytest.mark.parametrize(
    ("lengths", "budget", "kept"),
    [
        ((), 10, 0),
        ((5,), 0, 1),
        ((5, 5), 9, 1),
        ((5, 5), 10, 2),
        ((5, 5, 5), 10, 2),
        ((5, 5, 5), 15, 3),
        ((9, 1, 1), 10, 2),
    ],
)
def test_as_many_of_the_newest_are_kept_as_fit_and_always_the_last(
    lengths: tuple[int, ...], budget: int, kept: int
) -> None:
    turns = tuple(user(f"{number}" * length) for number, length in enumerate(lengths))
    assert newest_messages(turns, budget) == turns[len(turns) - kept :]


def test_a_result_is_never_kept_without_its_call() -> None:
    turns = (user("u" * 99), CALL, RESULT, RESULT)
    assert newest_messages(turns, 10) == turns[1:]
    assert newest_messages((RESULT, RESULT), 0) == (RESULT, RESULT)
    assert newest_messages((*turns, user("x")), 1) == (user("x"),)


def test_old_messages_go_first_and_that_is_said() -> None:
    old, new = user("o" * 1000), user("n" * 1000)
    assert shorten_request(request(old, new), 0.5).messages == (SYSTEM, EARLIER, new)
    assert shorten_request(request(old, new), 1.0).messages == (SYSTEM, old, new)


def test_one_long_message_loses_its_middle() -> None:
    (system, only) = shorten_request(request(user("a" * 500 + "b" * 500)), 0.6).messages
    assert system == SYSTEM
    head, notice, tail = only.text.split("\n")
    assert {*head, *tail} == {"a", "b"}
    assert len(head + tail) == 600
    assert notice.endswith("left out to fit the model's context …")
    short = request(user("x" * 200))
    assert shorten_request(short, 0.1) == short, "200 characters are left in any case"


class Small:
    """A model whose context holds so many characters."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.asked: list[int] = []

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        self.asked.append(sum(len(message.text) for message in request.messages))
        yield Delta(text="a")
        if self.asked[-1] > self._most:
            raise ContextExceeded("too long")
        yield Answer(text="done", model="m")


@pytest.mark.anyio
async def test_a_request_is_shortened_until_it_fits_or_nothing_more_can_go() -> None:
    asked = replace(request(user("x" * 10_000)), step=2)
    small = Small(5_000)
    items = [item async for item in ContextLimit(small).answer(asked)]
    assert items[-1] == Answer(text="done", model="m")
    assert items[:3] == [Delta(text="a"), Delta(restarted=True), Delta(text="a")]
    assert [round(one - 500, -3) for one in small.asked] == [10_000, 6_000, 4_000]
    nothing = Small(0)
    with pytest.raises(ContextExceeded):
        async for _ in ContextLimit(nothing).answer(asked):
            pass
    assert len(nothing.asked) == 5
