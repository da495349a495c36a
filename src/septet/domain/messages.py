"""What is said to a model and what it answers, in terms that every provider can be mapped to."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from septet.common.values import Value

StopReason = Literal["finished", "length", "calls", "filtered"]


class Usage(Value):
    """Tokens as the provider counts them; `cached` is the part of `prompt` that was read from its cache.

    `estimated` says that the provider's own figures were missing, or could not be true.
    """

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    estimated: bool = False

    def plus(self, other: "Usage") -> "Usage":
        return Usage(
            prompt=self.prompt + other.prompt,
            cached=self.cached + other.cached,
            completion=self.completion + other.completion,
            estimated=self.estimated or other.estimated,
        )

    @property
    def total(self) -> int:
        return self.prompt + self.completion


class ToolCall(Value):
    """A model's wish to use a tool; `arguments` is the JSON text exactly as it came."""

    id: str
    name: str
    arguments: str


class Message(Value):
    """One message of a request. `images` are blob addresses; `call` ties a tool's result to its call.

    `replay` is what the answer that it repeats says of its reasoning.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    images: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call: str = ""
    replay: str = ""


class ToolOffer(Value):
    """A tool as a model is told about it; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, object]


class Price(Value, forbid_unknown_fields=True):
    """What tokens cost, in US dollars per million."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        return (usage.prompt * self.prompt + usage.completion * self.completion) / 1e6


class Purse(Value):
    """What may be spent at most, US dollars or seconds; `limit` is the budget that it is left of, in words."""

    remaining: float
    limit: str


class Request(Value):
    """One question to a model: the `step`-th of its role in the chat, so that scripts and replays find it.

    Who knows a model's price holds the question back where the `purse` would not do for it; `price` is that of
    a model whose price nobody else knows. `timeout` is how many seconds one try may take. `thread` names the history
    that the request goes on with, so that a service finds what it has kept of it.
    """

    role: str
    step: int
    messages: tuple[Message, ...]
    tools: tuple[ToolOffer, ...] = ()
    schema: dict[str, object] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    purse: Purse | None = None
    price: Price | None = None
    thread: str = ""


class Delta(Value):
    """A piece of an answer while it is made. Not stored: the final answer is the truth.

    `restarted` says that the pieces before it are void: the answer is being made once more.
    """

    text: str = ""
    reasoning: str = ""
    restarted: bool = False


class Answer(Value):
    """A whole answer. `cost` in US dollars, None where no price is known.

    `replay` is reasoning in the words of the wire, which wants it back with the results of the calls.
    """

    text: str
    model: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    replay: str = ""
    stop: StopReason = "finished"
    usage: Usage = Usage()
    cost: float | None = None
    seconds: float = 0.0


BYTES_PER_TOKEN = 3
"""Seen in tokens of a current model: 3.2 to 4.4 in prose and Python, 2.3 to 3 in JSON, more in other scripts."""
PER_MESSAGE = 4
"""What marks its beginning, its role and its end."""
PER_PICTURE = 1000


def estimate_usage(request: Request) -> Usage:
    """What is asked, and the longest answer where that is bounded."""
    asked = [*map(of_message, request.messages), *map(of_offer, request.tools), of_schema(request.schema)]
    return Usage(prompt=sum(asked), completion=request.max_tokens or 0)


def of_message(message: Message) -> int:
    called = sum(of_text(call.name) + of_text(call.arguments) for call in message.calls)
    return PER_MESSAGE + of_text(message.text) + PER_PICTURE * len(message.images) + called


def of_offer(offer: ToolOffer) -> int:
    return of_text(offer.name) + of_text(offer.description) + of_schema(offer.parameters)


def of_schema(schema: Mapping[str, object] | None) -> int:
    return of_text(msgspec.json.encode(schema).decode()) if schema else 0


def of_text(text: str) -> int:
    """Rounded up: no text is free."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)
