"""Requests to models and their answers, independent of the provider."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from septet.common.values import Value

StopReason = Literal["finished", "length", "calls", "filtered"]


class Usage(Value):
    """Tokens as the provider counts them; `cached` is the part of `prompt` that was read from its cache.

    `estimated` means that the provider's own figures were missing or implausible.
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
    """A model's request to use a tool; `arguments` is the JSON text exactly as it came."""

    id: str
    name: str
    arguments: str


class Message(Value):
    """One message of a request. `images` are blob addresses; `call` ties a tool's result to its call.

    `replay` is the reasoning of the answer that it repeats, in the provider's form.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    images: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call: str = ""
    replay: str = ""


class ToolOffer(Value):
    """A tool as it is described to a model; `parameters` is a JSON schema."""

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
    """What is left of a budget, in US dollars or seconds; `limit` names the budget, as text."""

    remaining: float
    limit: str


class Request(Value):
    """One request to a model: the `step`-th of its role in the chat, so that scripts and replays find it.

    A request whose estimated cost exceeds the `purse` is not sent; `price` is for a model that is not in the price
    list. `timeout` is in seconds, for one attempt. `thread` identifies the conversation, so that a provider can reuse
    its prompt cache. `draws` is how many answers are wanted at once; a provider that cannot gives one.
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
    draws: int = 1


class Delta(Value):
    """A piece of a streamed answer. Not stored: only the final answer counts.

    `restarted` means that earlier pieces are discarded: the answer is generated again.
    """

    text: str = ""
    reasoning: str = ""
    restarted: bool = False


class Answer(Value):
    """A complete answer. `cost` in US dollars, None if the price is unknown.

    `replay` is the reasoning in the provider's form, which must be sent back with the results of the calls.
    `others` are the further answers to a request for several; `usage` counts the prompt once, and all answers.
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
    others: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All answers, where several were drawn at once."""
        return (self.text, *self.others)


BYTES_PER_TOKEN = 3
"""Measured with a current tokenizer: 3.2 to 4.4 in prose and Python, 2.3 to 3 in JSON, more in other scripts."""
TOKENS_PER_MESSAGE = 4
"""Tokens that mark its start, its role and its end."""
TOKENS_PER_PICTURE = 1000


def estimate_usage(request: Request) -> Usage:
    """Estimate the tokens of the request, and of the longest answers if these are limited."""
    messages, tools = map(message_tokens, request.messages), map(tool_tokens, request.tools)
    prompt = sum(messages) + sum(tools) + schema_tokens(request.schema)
    return Usage(prompt=prompt, completion=(request.max_tokens or 0) * request.draws)


def message_tokens(message: Message) -> int:
    calls = sum(text_tokens(call.name) + text_tokens(call.arguments) for call in message.calls)
    return TOKENS_PER_MESSAGE + text_tokens(message.text) + TOKENS_PER_PICTURE * len(message.images) + calls


def tool_tokens(offer: ToolOffer) -> int:
    return text_tokens(offer.name) + text_tokens(offer.description) + schema_tokens(offer.parameters)


def schema_tokens(schema: Mapping[str, object] | None) -> int:
    return text_tokens(msgspec.json.encode(schema).decode()) if schema else 0


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text, rounded up."""
    return -(-byte_length(text) // BYTES_PER_TOKEN)


def byte_length(text: str) -> int:
    """The length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
