"""The table of prices says what the library says that it is made from."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import genai_prices
import pytest
from genai_prices import data, types
from prices import NOWHERE, names_in

from septet.domain.messages import Usage
from septet.models.prices import price, table

ROOT = Path(__file__).parent.parent.parent
USAGES = (
    Usage(prompt=1_000, completion=500),
    Usage(prompt=150_000, cached=100_000, completion=2_000),
    Usage(prompt=900_000, cached=1_000, completion=70_000),
)
TIMES = (datetime(2026, 11, 18, 3, 0, tzinfo=UTC), datetime(2026, 12, 31, 20, 15, tzinfo=UTC))
PROVIDERS = [provider for provider in data.providers if not NOWHERE.match(provider.id)]


def names_of(provider: types.Provider) -> Iterator[str]:
    for model in provider.models:
        yield from (model.id, f"{model.id}-20270102", *names_in(model.match))


def library_price(usage: Usage, provider: str, model: str, now: datetime) -> float | None:
    """None too for what is not paid by tokens."""
    tokens = genai_prices.Usage(
        input_tokens=usage.prompt, cache_read_tokens=usage.cached, output_tokens=usage.completion
    )
    try:
        found = genai_prices.calc_price(tokens, model, provider_id=provider, genai_request_timestamp=now)
    except LookupError:
        return None
    by_tokens = found.model_price.input_mtok is not None or found.model_price.output_mtok is not None
    return float(found.total_price) if by_tokens else None


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.id)
def test_every_model_costs_what_the_library_says(provider: types.Provider) -> None:
    for name in names_of(provider):
        for usage in USAGES:
            for now in TIMES:
                expected = library_price(usage, provider.id, name, now)
                assert price(usage, provider.id, name, now) == (
                    None if expected is None else pytest.approx(expected)
                ), (name, usage, now)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("Gateway/OpenAI", "GPT-4o"),
        ("azure", "claude-sonnet-4-5"),
        ("nobody", "gpt-4o"),
        ("openai", "nonsense-9"),
    ],
)
def test_other_spellings_are_found_as_the_library_finds_them(provider: str, model: str) -> None:
    expected = library_price(USAGES[0], provider, model, TIMES[0])
    assert price(USAGES[0], provider, model, TIMES[0]) == (
        None if expected is None else pytest.approx(expected)
    )


def test_the_table_is_what_the_script_makes() -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "prices.py", "--check"], check=True, timeout=60)
    assert table().source.startswith("genai-prices ")
    assert "Permission is hereby granted" in table().licence
