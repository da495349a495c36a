"""What an answer took, by the server's figures as far as they can be true: else no budget would hold."""

from collections.abc import AsyncGenerator, Iterable

from msgspec.structs import replace

from septet.domain.messages import Answer, Request, Usage, estimate_usage, of_text
from septet.models.wrappers.ask import Item, open_answer
from septet.ports import Model

MAX_TOKEN_BYTES = 32
"""Bytes that a token stands for at most, taken over a whole text: 3 to 4 are usual, blanks make it more."""
MAX_TOKENS = 100_000_000
"""No answer takes more than that."""


class UsageCheck:
    """Figures that cannot be true are replaced by an estimate, and marked as such."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        async with open_answer(self._model, request) as items:
            async for item in items:
                yield check_usage(request, item) if isinstance(item, Answer) else item


def check_usage(request: Request, answer: Answer) -> Answer:
    told = answer.usage
    prompt = (
        told.prompt
        if are_plausible_tokens(told.prompt, request_texts(request))
        else estimate_usage(request).prompt
    )
    said = [answer.text, *(call.arguments for call in answer.calls)]
    likely = are_plausible_tokens(told.completion, said)
    completion = told.completion if likely else sum(map(of_text, [*said, answer.reasoning]))
    usage = Usage(
        prompt=prompt,
        cached=min(max(0, told.cached), prompt),
        completion=completion,
        estimated=told.estimated or (prompt, completion) != (told.prompt, told.completion),
    )
    return answer if usage == told else replace(answer, usage=usage)


def request_texts(request: Request) -> Iterable[str]:
    return [message.text for message in request.messages]


def are_plausible_tokens(tokens: int, texts: Iterable[str]) -> bool:
    size = sum(len(text.encode(errors="replace")) for text in texts)
    return size // MAX_TOKEN_BYTES <= tokens <= MAX_TOKENS and tokens >= min(1, size)
