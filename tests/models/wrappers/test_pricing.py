"""What an answer cost."""

import pytest
from models.asking import ask, open_openai, question
from msgspec.structs import replace

from septet.domain.messages import Price, Purse, Usage
from septet.errors import BadUsage, Overdrawn
from septet.models.http import HttpClient
from septet.models.providers.provider import Billing
from septet.models.table import find_provider
from septet.models.wrappers.pricing import Pricing, price
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio


def billing_of(name: str) -> Billing:
    provider, model = find_provider(name)
    return provider.billing(model)


MILLION = Usage(prompt=1_000_000, completion=1_000_000)


def test_known_models_have_a_price_and_cached_tokens_are_cheaper() -> None:
    full = price(MILLION, "openai", "gpt-4o")
    cached = price(Usage(prompt=1_000_000, cached=1_000_000, completion=1_000_000), "openai", "gpt-4o")
    assert full is not None
    assert cached is not None
    assert 0 < cached < full < 1000


def test_an_unknown_model_has_no_price_rather_than_a_wrong_one() -> None:
    assert price(MILLION, "openai", "nonsense-9") is None


@pytest.mark.parametrize(
    ("name", "free"),
    [
        ("local/qwen2.5-coder-1.5b", True),
        ("ollama/llama3", True),
        ("url:http://127.0.0.1:1234/v1#m", True),
        ("url:https://example.com/v1#m", False),
        ("openai/gpt-4o", False),
        ("pydantic-ai:ollama:llama3", True),
        ("pydantic-ai:groq:local", False),
    ],
)
def test_only_models_on_this_machine_are_free(name: str, free: bool) -> None:
    assert (billing_of(name) == "free") is free


@pytest.mark.parametrize(
    ("name", "cost"),
    [
        ("openai/gpt-4o", 12.5),
        ("pydantic-ai:openai-chat:gpt-4o", 12.5),
        ("pydantic-ai:nobody:m", None),
        ("local/m", 0.0),
        ("url:https://example.com#m", None),
    ],
)
async def test_the_answer_says_what_it_cost(name: str, cost: float | None) -> None:
    async with serve_mock(in_order(Reply(text="x", usage=MILLION))) as server, HttpClient() as wire:
        _, answer = await ask(Pricing(open_openai(server, wire), name, billing_of(name)), question("go"))
    assert answer.cost == cost


@pytest.mark.parametrize(
    ("name", "left", "held"),
    [
        ("openai/gpt-4o", 1e-6, True),
        ("openai/gpt-4o", 1.0, False),
        ("local/m", 0.0, False),
    ],
)
async def test_a_question_that_the_budget_is_too_small_for_is_not_asked(
    name: str, left: float, held: bool
) -> None:
    asking = replace(question("go"), purse=Purse(remaining=left, limit="the cost budget of $1"))
    async with serve_mock(in_order(Reply(text="x"))) as server, HttpClient() as wire:
        model = Pricing(open_openai(server, wire), name, billing_of(name))
        if held:
            with pytest.raises(
                Overdrawn, match=r"^the cost budget of \$1 is too small for the .*\$1e-06 left, about"
            ):
                await ask(model, asking)
        else:
            await ask(model, asking)
        assert len(server.seen) == (not held)


async def test_who_has_a_purse_must_know_the_price() -> None:
    asking = replace(question("go"), purse=Purse(remaining=1.0, limit="the cost budget of $1"))
    async with serve_mock(in_order(Reply(text="x", usage=MILLION))) as server, HttpClient() as wire:
        model = Pricing(
            open_openai(server, wire), "url:https://example.com#m", billing_of("url:https://example.com#m")
        )
        with pytest.raises(BadUsage, match=r"the price of .* is unknown"):
            await ask(model, asking)
        _, answer = await ask(model, replace(asking, price=Price(prompt=0.5, completion=1.5)))

    assert answer.cost == pytest.approx(2.0)
    assert len(server.seen) == 1
