"""Prices of models by provider, from the table `prices.json`, which `scripts/prices.py` makes from genai-prices."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path

import msgspec

from septet.common.values import Value
from septet.domain.messages import Usage

FILE = Path(__file__).parent / "prices.json"
COMPACT_DATE = re.compile(r"-(20\d\d)(\d\d)(\d\d)(?=-|:|$)")
"""Some services write the date in a model's name without dashes."""
TIME = "%H:%M"


class Rate(Value):
    """US dollars per million tokens; `above` are higher rates for all tokens of a request with more prompt tokens."""

    base: float
    above: tuple[tuple[int, float], ...] = ()

    def of(self, prompt_tokens: int) -> float:
        return next((rate for start, rate in reversed(self.above) if prompt_tokens > start), self.base)


class ListPrice(Value):
    """What a model costs from a date on, or between two times of the day (UTC). Without a rate of their own, `cached`
    tokens cost what others do; `request` is in dollars.
    """

    prompt: Rate | None = None
    completion: Rate | None = None
    cached: Rate | None = None
    request: float | None = None
    since: date | None = None
    between: tuple[str, str] | None = None

    def applies(self, now: datetime) -> bool:
        if self.between is None:
            return self.since is None or now.date() >= self.since
        start, end = self.between
        time = now.strftime(TIME)
        return start <= time < end if start <= end else time >= start or time < end

    def of(self, usage: Usage) -> float:
        cached = 0 if self.cached is None else usage.cached
        counts = (
            (self.prompt, usage.prompt - cached),
            (self.cached, cached),
            (self.completion, usage.completion),
        )
        tokens = sum(rate.of(usage.prompt) * count for rate, count in counts if rate is not None)
        return tokens / 1e6 + (self.request or 0)


class PricedModel(Value):
    """The exact `names` of a model, a `pattern` for others, and its prices: the last that applies counts."""

    prices: tuple[ListPrice, ...]
    names: tuple[str, ...] = ()
    pattern: str = ""

    def matches(self, name: str) -> bool:
        return name in self.names or (bool(self.pattern) and re.search(self.pattern, name) is not None)

    def price(self, now: datetime) -> ListPrice:
        return next((one for one in reversed(self.prices) if one.applies(now)), self.prices[0])


class PriceList(Value):
    """The models of one provider; `pattern` matches its other names, `fallbacks` are those whose models it offers."""

    pattern: str = ""
    fallbacks: tuple[str, ...] = ()
    models: tuple[PricedModel, ...] = ()

    def find(self, name: str) -> PricedModel | None:
        return next((model for model in self.models if model.matches(name)), None)


class PriceTable(Value):
    """Every provider's list. What nobody asks for is not decoded."""

    source: str
    licence: str
    providers: dict[str, msgspec.Raw]


@lru_cache
def table() -> PriceTable:
    return msgspec.json.decode(FILE.read_bytes(), type=PriceTable)


@lru_cache
def price_list(provider: str) -> PriceList | None:
    """The list of a provider by its id."""
    raw = table().providers.get(provider)
    return None if raw is None else msgspec.json.decode(raw, type=PriceList)


@lru_cache
def provider_id(name: str) -> str | None:
    """The id of the provider that is called so."""
    known = table().providers
    if name in known:
        return name
    return next((one for one in known if matches_provider(one, name)), None)


def matches_provider(provider: str, name: str) -> bool:
    found = price_list(provider)
    return found is not None and bool(found.pattern) and re.search(found.pattern, name) is not None


def price(usage: Usage, provider: str, model: str, now: datetime | None = None) -> float | None:
    """The cost in US dollars; None if no price is known."""
    found = priced_model(provider.lower().strip(), model.lower())
    return None if found is None else found.price(now or datetime.now(UTC)).of(usage)


@lru_cache
def priced_model(provider: str, model: str) -> PricedModel | None:
    identifier = provider_id(provider)
    if identifier is None:
        return None
    found = (known.find(name) for name in spellings(model) for known in lists_of(identifier))
    return next(filter(None, found), None)


def spellings(model: str) -> Sequence[str]:
    return (model, COMPACT_DATE.sub(r"-\1-\2-\3", model))


def lists_of(provider: str) -> Iterator[PriceList]:
    own = price_list(provider)
    assert own is not None
    yield own
    yield from filter(None, map(price_list, own.fallbacks))
