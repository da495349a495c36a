"""What a request will take before anybody has counted it: rather a little too much than too little. Pure."""

from collections.abc import Mapping

import msgspec

from septet.domain.talk import Message, Request, ToolOffer, Usage

BYTES_PER_TOKEN = 3
"""Seen in tokens of a current model: 3.2 to 4.4 in prose and Python, 2.3 to 3 in JSON, more in other scripts."""
PER_MESSAGE = 4
"""What marks its beginning, its role and its end."""
PER_PICTURE = 1000


def estimated(request: Request) -> Usage:
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
