"""An answer that only repeats itself is cut; any other one comes through as it is."""

import pytest
from models.asking import ask, open_openai, question
from msgspec.structs import replace

from septet.domain.messages import Delta, Message, Request, Usage
from septet.models.http import HttpClient
from septet.models.wrappers.early_stop import (
    REPEATED_LINES,
    EarlyStop,
    is_complete,
    is_repeating,
    partial_answer,
)
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio

LONG_LINE = f"'{' '.join(f'word {number} of a goal on one line.' for number in range(60))}'"
CODE = "def f(n):\n    return n\n\n\ndef test_f():\n"


async def answer_to(text: str) -> str:
    async with serve_mock(in_order(Reply(text=text, piece=9, pause=0.0001))) as server, HttpClient() as wire:
        _, answer = await ask(EarlyStop(open_openai(server, wire)), question("go"))
    assert answer.usage.completion > 0
    assert 0 <= answer.seconds < 1000
    return answer.text


async def test_a_loop_of_asserts_is_cut_after_a_few() -> None:
    endless = "".join(f"    assert f({n}) == {n}\n" for n in range(200))
    text = await answer_to(CODE + endless)
    assert text.startswith(CODE + "    assert f(0) == 0\n")
    assert REPEATED_LINES <= text.count("assert") <= REPEATED_LINES + 2


async def test_a_line_that_does_not_end_is_cut() -> None:
    text = await answer_to("x = [" + "(1, True), " * 500)
    assert len(text) < 1000


async def test_an_explanation_after_code_and_tests_is_left_out() -> None:
    block = f"```python\n{CODE}    assert f(1) == 1\n```\n"
    told = await answer_to(block + "\nThe above code defines a function. " * 20)
    assert told.startswith(block)
    assert len(told) < len(block) + 20
    bare = f"```python\n{CODE.partition('def test')[0]}assert f(1) == 1\n```\n"
    assert len(await answer_to(bare + "\nThe above code defines a function. " * 20)) < len(bare) + 20
    apart = f"```python\ndef f(n):\n    return n\n```\n{block}"
    assert (await answer_to(apart + "It works.\n" * 3)).count("```") == 4


@pytest.mark.parametrize(
    "text",
    [
        CODE + "    assert f(1) == 1\n" * 3,
        "\n" * 50,
        "}\n" * 20,
        CODE * 20,
        "words without an end of line",
        LONG_LINE,
    ],
)
async def test_what_is_no_loop_comes_through(text: str) -> None:
    assert await answer_to(text) == text


TAIL = "abcdefghijklmnopqrstuvwxyz0123456789-_+*"
"""40 characters, none of which makes a shorter loop."""


@pytest.mark.parametrize(
    ("text", "newest", "loops"),
    [
        (TAIL * 5, "*", True),
        (TAIL * 4, "*", False),
        ("x = 1\n" + TAIL * 5, "*", True),
        (TAIL * 4 + "\n" + TAIL, "*", False),
        (TAIL * 5, "", False),
        ("x = 1\n" * 7, "\n", True),
        ("x = 1\n" * 6, "\n", False),
        ("y\n" + "x = 1\n" * 7 + "x =", "\nx =", True),
        ("x = 1\n" * 6 + "y = 1\n", "\n", False),
        ("pass\n" * 7, "\n", False),
    ],
)
def test_a_loop_is_seven_lines_of_one_shape_or_a_line_with_five_equal_ends(
    text: str, newest: str, loops: bool
) -> None:
    assert is_repeating(text, Delta(text=newest)) is loops


BLOCK = "```python\n{}\n```\n"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (BLOCK.format("def test_f(): ..."), True),
        (BLOCK.format("x = 1\nassert x"), True),
        (BLOCK.format("x = 1"), False),
        (BLOCK.format("def test_f(): ...") + "```python\n", False),
        (BLOCK.format("def test_f(): ...").rstrip(), False),
    ],
)
def test_an_answer_is_whole_when_code_and_tests_are_there_and_their_block_is_closed(
    text: str, whole: bool
) -> None:
    assert is_complete(text, Delta(text="```\n")) is whole
    assert not is_complete(text, Delta(text="``` ")), "the line has not ended"


def test_what_was_cut_has_estimated_counts_and_says_that_it_was_cut() -> None:
    asked = Request(
        role="coder", step=1, messages=(Message(role="user", text="a" * 9), Message(role="user", text="b"))
    )
    answer = partial_answer(asked, "c" * 7, 2.5)
    assert answer.usage == Usage(prompt=2, completion=1, estimated=True)
    assert (answer.text, answer.stop, answer.seconds) == ("c" * 7, "length", 2.5)


async def test_of_several_answers_none_is_stopped() -> None:
    loop = "".join(f"assert f({n}) == {n}\n" for n in range(40))
    async with serve_mock(in_order(Reply(text=loop))) as server, HttpClient() as wire:
        _, answer = await ask(EarlyStop(open_openai(server, wire)), replace(question("go"), draws=4))
    assert answer.text == loop
