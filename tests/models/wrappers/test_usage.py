"""What an answer took: a server's figures count as far as they can be true."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.asking import ask, open_openai, question
from models.raw_server import EVENTS, raw_server
from msgspec.structs import replace

from septet.domain.messages import Answer, Request, Usage, text_tokens
from septet.models.credentials import bearer
from septet.models.http import HttpClient
from septet.models.providers.openai import OpenAIModel
from septet.models.wrappers.pricing import (
    MAX_TOKEN_BYTES,
    MAX_TOKENS,
    UsageCheck,
    are_plausible_tokens,
    check_usage,
)
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio
ASKED: Request = question("x" * 3000)
SAID = Answer(text="y" * 300)


@pytest.mark.parametrize(("prompt", "completion"), [(0, 0), (-5_000, -9), (1, 1), (10**15, 10**30)])
def test_figures_that_cannot_be_true_are_estimated(prompt: int, completion: int) -> None:
    found = check_usage(ASKED, replace(SAID, usage=Usage(prompt=prompt, completion=completion))).usage

    assert found.estimated
    assert 1000 <= found.prompt <= 1100
    assert found.completion == 100


@pytest.mark.parametrize(
    "usage", [Usage(prompt=800, cached=600, completion=70), Usage(prompt=700, completion=40_000)]
)
def test_likely_figures_stay_as_they_are(usage: Usage) -> None:
    """Reasoning that is not shown is paid for too."""
    assert check_usage(ASKED, replace(SAID, usage=usage)).usage == usage


SIZE = 10 * MAX_TOKEN_BYTES


@pytest.mark.parametrize(
    ("tokens", "texts", "plausible"),
    [
        (10, ["x" * SIZE], True),
        (9, ["x" * SIZE], False),
        (11, ["x" * SIZE, "y" * MAX_TOKEN_BYTES], True),
        (10, ["x" * SIZE, "y" * MAX_TOKEN_BYTES], False),
        (MAX_TOKENS, ["x"], True),
        (MAX_TOKENS + 1, ["x"], False),
        (1, ["x"], True),
        (0, ["x"], False),
        (0, [""], True),
        (1, ["xyz"], True),
        (-1, [""], False),
    ],
)
def test_a_count_is_believed_if_the_text_can_have_so_many_tokens(
    tokens: int, texts: list[str], plausible: bool
) -> None:
    assert are_plausible_tokens(tokens, texts) is plausible


@given(st.integers(), st.integers(), st.integers(), st.text(max_size=500))
def test_no_figure_makes_an_answer_cheaper_than_it_can_be(
    prompt: int, cached: int, completion: int, text: str
) -> None:
    usage = Usage(prompt=prompt, cached=cached, completion=completion)
    found = check_usage(ASKED, Answer(text=text, usage=usage)).usage

    assert 3000 // MAX_TOKEN_BYTES <= found.prompt <= MAX_TOKENS
    assert 0 <= found.cached <= found.prompt
    assert 3 * text_tokens(text) // MAX_TOKEN_BYTES - 1 <= found.completion <= MAX_TOKENS


async def test_the_answer_of_a_server_that_lies_is_kept_and_its_figures_are_not() -> None:
    lying = in_order(Reply(text="hello", usage=Usage(prompt=-10, completion=-10)))
    async with serve_mock(lying) as server, HttpClient() as wire:
        _, answer = await ask(UsageCheck(open_openai(server, wire)), question("go"))

    assert answer.text == "hello"
    assert answer.usage.estimated
    assert answer.usage.total > 0


CHOICES = (
    b'data: {"choices":[{"index":1,"delta":{"content":"second"}},{"index":0,"delta":{"content":"first"}}]}\n\n'
    b'data: {"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":"many"}}\n\n'
    b"data: [DONE]\n\n"
)


async def test_of_several_choices_the_first_by_its_number_is_the_answer() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield CHOICES

    async with raw_server(EVENTS, body) as server, HttpClient() as wire:
        model = OpenAIModel(f"{server.url}/chat/completions", "mock", bearer(""), wire)
        _, answer = await ask(model, question("go"))

    assert (answer.text, answer.stop) == ("first", "finished")
