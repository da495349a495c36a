"""Token counts and costs of answers: implausible counts become estimates, prices come from lists or the person."""

from collections.abc import AsyncGenerator, Iterable

from msgspec.structs import replace

from septet.domain.messages import (
    Answer,
    Price,
    Purse,
    Request,
    Usage,
    byte_length,
    estimate_usage,
    text_tokens,
)
from septet.errors import BadUsage, Overdrawn
from septet.models.prices import price
from septet.models.providers.provider import Billing
from septet.models.wrappers.streams import Item, open_answer
from septet.ports import Model

MAX_TOKEN_BYTES = 32
"""The most bytes per token, as a mean over a whole text: 3 to 4 are usual, runs of spaces make it more."""
MAX_TOKENS = 100_000_000
"""A larger count is an error of the server."""


class UsageCheck:
    """Marks usage that it replaced as estimated."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        async with open_answer(self._model, request) as items:
            async for item in items:
                yield check_usage(request, item) if isinstance(item, Answer) else item


def check_usage(request: Request, answer: Answer) -> Answer:
    reported = answer.usage
    prompt = (
        reported.prompt
        if are_plausible_tokens(reported.prompt, request_texts(request))
        else estimate_usage(request).prompt
    )
    texts = [*answer.texts, *(call.arguments for call in answer.calls)]
    is_plausible = are_plausible_tokens(reported.completion, texts)
    completion = reported.completion if is_plausible else sum(map(text_tokens, [*texts, answer.reasoning]))
    usage = Usage(
        prompt=prompt,
        cached=min(max(0, reported.cached), prompt),
        completion=completion,
        estimated=reported.estimated or (prompt, completion) != (reported.prompt, reported.completion),
    )
    return answer if usage == reported else replace(answer, usage=usage)


def request_texts(request: Request) -> Iterable[str]:
    return [message.text for message in request.messages]


def are_plausible_tokens(tokens: int, texts: Iterable[str]) -> bool:
    size = sum(map(byte_length, texts))
    return size // MAX_TOKEN_BYTES <= tokens <= MAX_TOKENS and tokens >= min(1, size)


class Pricing:
    """`name` is the full name of the model, including its provider."""

    def __init__(self, model: Model, name: str, billing: Billing) -> None:
        self._model = model
        self._name = name
        self._billing: Billing = billing

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        if request.purse is not None:
            self._check(request, request.purse)
        async with open_answer(self._model, request) as items:
            async for item in items:
                yield self._with_cost(item, request.price) if isinstance(item, Answer) else item

    def _check(self, request: Request, purse: Purse) -> None:
        """Raise an error before the request if its price is unknown or more than is left."""
        cost = self._cost(estimate_usage(request), request.price)
        if cost is None:
            raise unknown_price(self._name)
        if cost > purse.remaining:
            figures = f"${purse.remaining:.6g} left, about ${cost:.6g} needed"
            raise Overdrawn(f"{purse.limit} is too small for the {request.role}'s next turn: {figures}")

    def _with_cost(self, answer: Answer, given: Price | None) -> Answer:
        cost = self._cost(answer.usage, given, answer.model)
        return answer if cost is None else replace(answer, cost=cost)

    def _cost(self, usage: Usage, given: Price | None, reported_model: str = "") -> float | None:
        """`reported_model` is the name in the provider's answer, which may be more exact than ours."""
        cost = listed_price(usage, self._billing, reported_model)
        return given.of(usage) if cost is None and given is not None else cost


def listed_price(usage: Usage, billing: Billing, reported_model: str = "") -> float | None:
    """The cost by the public price lists; None if it is unknown."""
    if billing is None or isinstance(billing, str):
        return 0.0 if billing == "free" else None
    names = filter(None, (reported_model, billing.model))
    costs = (price(usage, billing.provider, name) for name in names)
    return next((cost for cost in costs if cost is not None), None)


def has_price(billing: Billing) -> bool:
    return listed_price(Usage(), billing) is not None


def unknown_price(name: str) -> BadUsage:
    return BadUsage(
        f"the cost cannot be limited, because the price of {name} is unknown",
        "set it with --price IN/OUT (US dollars per million tokens), or use --max-tokens",
    )
