"""Makes `src/septet/models/prices.json`, what tokens cost, from the data of the library genai-prices.

Run: python scripts/prices.py [--check]

`--check` writes nothing and fails where the file is not what the installed library makes. Left out are models that are
not paid by tokens, prices that others have replaced, and providers that no name of a model leads to.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from importlib.metadata import distribution
from itertools import chain
from typing import assert_never

import msgspec
from genai_prices import data, types

from septet.models.prices import FILE, TIME, ListPrice, PricedModel, PriceList, Rate

NOWHERE = re.compile("huggingface_|avian|baseten|cursor|databricks|doubleword|modal|novita|quicksilverpro")
"""Providers that pydantic-ai does not know."""


def names_in(clause: types.MatchLogic) -> Iterator[str]:
    """The exact names among the alternatives."""
    if isinstance(clause, types.ClauseOr):
        for one in clause.or_:
            yield from names_in(one)
    elif isinstance(clause, types.ClauseEquals):
        yield clause.equals.lower()


def patterns_in(clause: types.MatchLogic) -> Iterator[str]:
    """The other alternatives, as regular expressions."""
    match clause:
        case types.ClauseOr():
            yield from chain.from_iterable(map(patterns_in, clause.or_))
        case types.ClauseAnd():
            yield "^" + "".join(f"(?=.*(?:{pattern(one)}))" for one in clause.and_)
        case types.ClauseStartsWith():
            yield f"^{quoted(clause.starts_with)}"
        case types.ClauseEndsWith():
            yield f"{quoted(clause.ends_with)}$"
        case types.ClauseContains():
            yield quoted(clause.contains)
        case types.ClauseRegex():
            yield clause.regex
        case types.ClauseEquals():
            return
        case _:
            assert_never(clause)


def pattern(clause: types.MatchLogic) -> str:
    """The whole clause as one regular expression."""
    return "|".join([*(f"^{quoted(name)}$" for name in names_in(clause)), *patterns_in(clause)])


def quoted(name: str) -> str:
    return re.escape(name.lower()).replace(r"\-", "-")


def rate(price: object) -> Rate | None:
    if isinstance(price, types.TieredPrices):
        above = tuple((tier.start, float(tier.price)) for tier in price.tiers)
        return Rate(base=float(price.base), above=above)
    return None if price is None else Rate(base=float(str(price)))


def list_price(prices: types.ModelPrice, constraint: object = None) -> ListPrice | None:
    """None for what is not paid by tokens."""
    prompt, completion = rate(prices.input_mtok), rate(prices.output_mtok)
    if prompt is None and completion is None:
        return None
    between = None
    if isinstance(constraint, types.TimeOfDateConstraint):
        between = (constraint.start_time.strftime(TIME), constraint.end_time.strftime(TIME))
    return ListPrice(
        prompt=prompt,
        completion=completion,
        cached=rate(prices.cache_read_mtok),
        request=float(str(prices.requests_kcount)) / 1000 if prices.requests_kcount else None,
        since=constraint.start_date if isinstance(constraint, types.StartDateConstraint) else None,
        between=between,
    )


def list_prices(model: types.ModelInfo, today: date) -> tuple[ListPrice, ...]:
    if isinstance(model.prices, types.ModelPrice):
        return tuple(filter(None, [list_price(model.prices)]))
    found = [one for each in model.prices if (one := list_price(each.prices, each.constraint))]
    return tuple(found[newest(found, today) :])


def newest(prices: Sequence[ListPrice], today: date) -> int:
    """The place of the last price that applies all day by today: what stands before it is over."""
    begun = [
        place
        for place, one in enumerate(prices)
        if one.between is None and (one.since is None or one.since <= today)
    ]
    return begun[-1] if begun else 0


def priced_models(provider: types.Provider, today: date) -> Iterator[PricedModel]:
    for model in provider.models:
        names, others = tuple(dict.fromkeys(names_in(model.match))), "|".join(patterns_in(model.match))
        if prices := list_prices(model, today):
            yield PricedModel(names=names, pattern=others, prices=prices)


def table(today: date) -> str:
    """One line a model, so that a change of prices can be read."""
    package = distribution("genai-prices")
    licence = next(file for file in package.files or () if file.name == "LICENSE").read_text()
    lines = [
        f'{{"source": "genai-prices {package.version}, {today}",',
        f'"licence": {text(licence)},',
        '"providers": {',
    ]
    for provider in data.providers:
        if NOWHERE.match(provider.id):
            continue
        known = PriceList(
            pattern=pattern(provider.provider_match) if provider.provider_match else "",
            fallbacks=tuple(provider.fallback_model_providers or ()),
        )
        lines += [f'"{provider.id}": {text(known)[:-1]}{"," if text(known) != "{}" else ""}"models": [']
        lines += [f"{text(model)}," for model in priced_models(provider, today)]
        lines[-1] = lines[-1].removesuffix(",") + "]},"
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([*lines, "}}", ""])


def text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def main() -> None:
    written = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
    if "--check" not in sys.argv:
        today = date.today()  # noqa: DTZ011  # the day of whoever runs it
        FILE.write_text(table(today), encoding="utf-8")
    elif written != table(date.fromisoformat(written[written.index(", ") + 2 :][:10])):
        sys.exit(f"{FILE} is not what scripts/prices.py makes: run it")


if __name__ == "__main__":
    main()
