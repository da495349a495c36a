"""Replaces implausible token counts of a server by estimates: budgets depend on them."""

from collections.abc import AsyncGenerator, Iterable

from msgspec.structs import replace

from septet.domain.messages import Answer, Request, Usage, estimate_usage, text_tokens
from septet.models.wrappers.ask import Item, open_answer
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
    texts = [answer.text, *(call.arguments for call in answer.calls)]
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
    size = sum(len(text.encode(errors="replace")) for text in texts)
    return size // MAX_TOKEN_BYTES <= tokens <= MAX_TOKENS and tokens >= min(1, size)
