"""What an answer cost, by the public price lists or as the person says; a model on this machine costs nothing."""

import re
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

from anyio import to_thread
from msgspec.structs import replace

from septet.domain.messages import Answer, Price, Purse, Request, Usage, estimated
from septet.errors import BadUsage, Overdrawn
from septet.models.names import LIBRARY
from septet.models.wrappers.ask import Item, open_answer
from septet.ports import Model

FREE = ("local", "ollama")
PRICED_AS = {
    "google-cloud": "google",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "xai": "x-ai",
    "bedrock": "aws",
}
"""Providers whose name in the price lists is another one than in the library."""
HERE = ("localhost", "127.0.0.1", "::1")


class Pricing:
    """`name` is the model's whole name: its provider and what the provider calls it."""

    def __init__(self, model: Model, name: str) -> None:
        self._model = model
        self._name = name

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        if request.purse is not None:
            await self._check(request, request.purse)
        async with open_answer(self._model, request) as items:
            async for item in items:
                yield await self._priced(item, request.price) if isinstance(item, Answer) else item

    async def _check(self, request: Request, purse: Purse) -> None:
        """Whoever asks for the first time is told before it is paid."""
        cost = await self._cost(estimated(request), request.price)
        if cost is None:
            raise unknown_price(self._name)
        if cost > purse.left:
            figures = f"${purse.left:.6g} left, about ${cost:.6g} needed"
            raise Overdrawn(f"{purse.limit} is too small for the {request.role}'s next turn: {figures}")

    async def _priced(self, answer: Answer, given: Price | None) -> Answer:
        cost = await self._cost(answer.usage, given, answer.model)
        return answer if cost is None else replace(answer, cost=cost)

    async def _cost(self, usage: Usage, given: Price | None, answering: str = "") -> float | None:
        """`answering` is what the provider calls the model, which may be more exact than our name for it."""
        # The price lists take most of a second to load, once.
        cost = await to_thread.run_sync(listed_price, usage, self._name, answering)
        return given.of(usage) if cost is None and given is not None else cost


def listed_price(usage: Usage, name: str, answering: str = "") -> float | None:
    """What a model of that whole name asks for the usage; None where nobody knows."""
    if is_free(name):
        return 0.0
    provider, model = price_list_entry(name)
    names = filter(None, (answering, model)) if provider else ()
    return next((cost for one in names if (cost := price(usage, provider, one)) is not None), None)


def unknown_price(name: str) -> BadUsage:
    return BadUsage(
        f"a bound on the cost would bound nothing: nobody knows the price of {name}",
        "say it with --price IN/OUT (US dollars per million tokens), or use --max-tokens",
    )


def is_free(name: str) -> bool:
    if name.startswith("url:"):
        return urlsplit(name.removeprefix("url:")).hostname in HERE
    return re.split("[/:]", name.removeprefix(LIBRARY))[0] in FREE


def price_list_entry(name: str) -> tuple[str, str]:
    """Who asks for money under which name; nobody known for a bare address."""
    mark = ":" if name.startswith(LIBRARY) else "/"
    provider, _, model = name.removeprefix(LIBRARY).partition(mark)
    known = mark == ":" or provider in ("openai", "azure", "anthropic")
    return (PRICED_AS.get(provider, provider), model) if known else ("", "")


def price(usage: Usage, provider: str, model: str) -> float | None:
    """US dollars; None where no price is known."""
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.prompt, cache_read_tokens=usage.cached, output_tokens=usage.completion
    )
    try:
        return float(genai_prices.calc_price(counted, model, provider_id=provider).total_price)
    except LookupError:
        return None
