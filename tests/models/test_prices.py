"""The table of prices says what the library says that it is made from."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import genai_prices
import pytest
from genai_prices import data, types
from prices import NOWHERE, names_in

from septet.domain.messages import Usage
from septet.models.prices import ListPrice, PricedModel, Rate, price, table

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


def at(hour: int, minute: int = 0, day: int = 1) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("between", "cheap", "dear"),
    [
        (("08:00", "16:00"), [at(8), at(15, 59)], [at(7, 59), at(16), at(0)]),
        (("16:30", "00:30"), [at(16, 30), at(23, 59), at(0), at(0, 29)], [at(0, 30), at(16, 29), at(12)]),
    ],
)
def test_a_price_of_certain_hours_is_of_those_hours(
    between: tuple[str, str], cheap: list[datetime], dear: list[datetime]
) -> None:
    price = ListPrice(between=between)
    assert [one for one in cheap if not price.applies(one)] == []
    assert [one for one in dear if price.applies(one)] == []


def test_a_price_counts_from_its_date_on_and_the_last_that_applies_counts() -> None:
    old, new = ListPrice(), ListPrice(since=date(2026, 3, 5))
    model = PricedModel(prices=(old, new))
    assert [model.price(at(0, day=day)) for day in (4, 5, 6)] == [old, new, new]
    future = PricedModel(prices=(new, ListPrice(since=date(2027, 1, 1))))
    assert future.price(at(0, day=1)) is new, "the first one, if none applies yet"


def test_what_a_usage_costs_by_each_kind_of_rate() -> None:
    rate = Rate(base=1.0, above=((1_000_000, 2.0), (3_000_000, 4.0)))
    million = 1_000_000
    assert [rate.of(count) for count in (0, million, million + 1, 3 * million, 3 * million + 1)] == [
        1.0, 1.0, 2.0, 2.0, 4.0,
    ]  # fmt: skip
    usage = Usage(prompt=million, cached=million // 4, completion=million // 2)
    assert ListPrice(prompt=Rate(base=8.0)).of(usage) == 8.0
    assert ListPrice(prompt=Rate(base=8.0), cached=Rate(base=4.0)).of(usage) == 7.0
    assert ListPrice(completion=Rate(base=8.0), request=0.25).of(usage) == 4.25
