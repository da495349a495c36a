"""An answer that only repeats itself is cut; any other one comes through as it is."""

import pytest
from models.asking import ask, open_openai, question

from septet.models.http import HttpClient
from septet.models.wrappers.early_stop import REPEATED_LINES, EarlyStop
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio

LONG_LINE = f"'{' '.join(f'word {number} of a goal on one line.' for number in range(60))}'"
CODE = "def f(n):\n    return n\n\n\ndef test_f():\n"


async def answer_to(text: str) -> str:
    async with serve_mock(in_order(Reply(text=text, piece=9, pause=0.0001))) as server, HttpClient() as wire:
        _, answer = await ask(EarlyStop(open_openai(server, wire)), question("go"))
    assert answer.usage.completion > 0
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
