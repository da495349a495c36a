"""What an answer cost, by the public price lists; a model on this machine costs nothing."""

import re
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

from anyio import to_thread
from msgspec.structs import replace

from septet.domain.estimates import estimated
from septet.domain.talk import Answer, Purse, Request, Usage
from septet.errors import Overdrawn
from septet.models.asked import Item, asked
from septet.models.names import LIBRARY
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


class Priced:
    """`name` is the model's whole name: its provider and what the provider calls it."""

    def __init__(self, model: Model, name: str) -> None:
        self._model = model
        self._name = name

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        if request.purse is not None:
            await self._check(request, request.purse)
        async with asked(self._model, request) as items:
            async for item in items:
                yield await self._priced(item) if isinstance(item, Answer) else item

    async def _check(self, request: Request, purse: Purse) -> None:
        """Whoever asks for the first time is told before it is paid."""
        cost = await self._cost(estimated(request))
        if cost is not None and cost > purse.left:
            figures = f"{purse.left:.6g} are left, about {cost:.6g} would be used"
            raise Overdrawn(f"{purse.limit} would not do for the {request.role}'s next turn ({figures})")

    async def _priced(self, answer: Answer) -> Answer:
        cost = await self._cost(answer.usage, answer.model)
        return answer if cost is None else replace(answer, cost=cost)

    async def _cost(self, usage: Usage, answering: str = "") -> float | None:
        """`answering` is what the provider calls the model, which may be more exact than our name for it."""
        if is_free(self._name):
            return 0.0
        provider, model = vendor(self._name)
        for name in filter(None, (answering, model)) if provider else ():
            # The price lists take most of a second to load, once.
            cost = await to_thread.run_sync(price, usage, provider, name)
            if cost is not None:
                return cost
        return None


def is_free(name: str) -> bool:
    if name.startswith("url:"):
        return urlsplit(name.removeprefix("url:")).hostname in HERE
    return re.split("[/:]", name.removeprefix(LIBRARY))[0] in FREE


def vendor(name: str) -> tuple[str, str]:
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
