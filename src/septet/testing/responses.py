"""From a reply and a fault to the bytes of a response and how it ends."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec.structs import replace

from septet.common.values import Value
from septet.domain.messages import ToolCall, Usage
from septet.testing import anthropic_form, openai_form
from septet.testing.replies import FEATURES, Fault, Feature, Reply, SeenRequest

End = Literal["whole", "closed", "reset", "hung"]


class Response(Value):
    """`ending` other than "whole" leaves the body unfinished; status 0 sends nothing at all."""

    status: int
    body: tuple[bytes, ...]
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    ending: End = "whole"
    pause: float = 0.0


class Form(Value):
    """One wire: how it renders a reply and an error; the last `tail` events of a stream end it."""

    pieces: Callable[[Reply], Iterator[bytes]]
    whole: Callable[[Reply], dict[str, object]]
    error: Callable[[str, str], dict[str, object]]
    tail: int


OPENAI = Form(
    pieces=openai_form.openai_events, whole=openai_form.openai_answer, error=openai_form.openai_error, tail=3
)
ANTHROPIC = Form(
    pieces=anthropic_form.anthropic_events,
    whole=anthropic_form.anthropic_answer,
    error=anthropic_form.anthropic_error,
    tail=2,
)
BROKEN = '{"path": "main.py", "content": "print('


def request_form(seen: SeenRequest) -> Form:
    return ANTHROPIC if seen.path.split("?")[0].endswith("/messages") else OPENAI


def plain_response(seen: SeenRequest, reply: Reply) -> Response:
    form = request_form(seen)
    if seen.fields.get("stream") is not True:
        return Response(status=200, body=(msgspec.json.encode(form.whole(reply)),))
    return Response(status=200, body=render_reply(form, reply), kind="text/event-stream", pause=reply.pause)


@lru_cache(maxsize=64)
def render_reply(form: Form, reply: Reply) -> tuple[bytes, ...]:
    return tuple(form.pieces(reply))


class MockExchange(Value):
    """A question, its good reply, and the wire that both are in."""

    request: SeenRequest
    form: Form
    reply: Reply
    retry_after: str

    @property
    def good(self) -> Response:
        return plain_response(self.request, self.reply)

    @property
    def first_half(self) -> tuple[bytes, ...]:
        """The first half of a good stream, without any event that ends it."""
        return self.good.body[: self.half]

    @property
    def half(self) -> int:
        return max(1, (len(self.good.body) - self.form.tail) // 2)

    def with_body(self, body: tuple[bytes, ...], ending: End = "whole") -> Response:
        return replace(self.good, body=body, ending=ending)


def faulty(fault: Fault, seen: SeenRequest, reply: Reply, retry_after: str) -> Response:
    """What the fault makes of a good response."""
    return FAULTS[fault](
        MockExchange(request=seen, form=request_form(seen), reply=reply, retry_after=retry_after)
    )


def rate_limited(asked: MockExchange) -> Response:
    header = ("Retry-After", asked.retry_after)
    return api_error_response(asked.form, 429, "slow down", "rate_limit_exceeded", (header,))


def server_error(asked: MockExchange) -> Response:
    return api_error_response(asked.form, 500, "something broke", "internal_error")


def unavailable(asked: MockExchange) -> Response:
    return api_error_response(asked.form, 503, "overloaded", "overloaded_error")


def context_too_long(asked: MockExchange) -> Response:
    text = "This model's maximum context length is 100 tokens: prompt is too long"
    return api_error_response(asked.form, 400, text, "context_length_exceeded")


def truncated_response(asked: MockExchange) -> Response:
    next_event = asked.good.body[asked.half]
    return asked.with_body((*asked.first_half, next_event[: len(next_event) // 2]), "closed")


def no_choices(asked: MockExchange) -> Response:
    if asked.form is ANTHROPIC:
        return asked.with_body(render_reply(asked.form, Reply()))
    return asked.with_body(
        (openai_form.chunk([]), openai_form.chunk([], Usage(prompt=11)), b"data: [DONE]\n\n")
    )


FAULTS: dict[Fault, Callable[[MockExchange], Response]] = {
    "rate limited": rate_limited,
    "server error": server_error,
    "unavailable": unavailable,
    "context too long": context_too_long,
    "reset": lambda asked: Response(status=0, body=(), ending="reset"),
    "reset midway": lambda asked: asked.with_body(asked.first_half, "reset"),
    "truncated": truncated_response,
    "malformed": lambda asked: asked.with_body((*asked.first_half, b'data: {"choices": [{"del\n\n')),
    "html": lambda asked: Response(status=200, body=(b"<html>Please log in</html>",), kind="text/html"),
    "no choices": no_choices,
    "null content": lambda asked: asked.with_body(render_reply(asked.form, Reply())),
    "bad arguments": lambda asked: plain_response(
        asked.request, with_broken_call(asked.request, asked.reply)
    ),
    "stall": lambda asked: Response(status=0, body=(), ending="hung"),
    "stall midway": lambda asked: asked.with_body(asked.first_half, "hung"),
    "no finish reason": lambda asked: asked.with_body(asked.good.body[: -asked.form.tail]),
    "filtered": lambda asked: plain_response(asked.request, Reply(stop="filtered")),
}


def with_broken_call(seen: SeenRequest, reply: Reply) -> Reply:
    """The reply's own first call, or one of the first tool that was offered, cut off in the middle."""
    call = reply.calls[0] if reply.calls else ToolCall(id="call_1", name=first_tool(seen), arguments="")
    broken = replace(call, arguments=BROKEN)
    return replace(reply, calls=(broken, *reply.calls[1:]))


def first_tool(seen: SeenRequest) -> str:
    tools = msgspec.convert(seen.fields.get("tools", []), list[dict[str, object]])
    if not tools:
        return "write"
    function = tools[0].get("function", tools[0])
    return msgspec.convert(function, dict[str, object]).get("name", "write").__str__()


def api_error_response(
    form: Form, status: int, message: str, code: str, headers: tuple[tuple[str, str], ...] = ()
) -> Response:
    return Response(status=status, body=(msgspec.json.encode(form.error(message, code)),), headers=headers)


def missing_feature(seen: SeenRequest, features: frozenset[Feature]) -> Feature | None:
    """A feature that the request uses and this server does not have."""
    fields = seen.fields
    used: dict[Feature, bool] = {
        "tools": "tools" in fields,
        "schema": "response_format" in fields,
        "images": b'"image_url"' in seen.body or b'"type":"image"' in seen.body,
    }
    return next((name for name in sorted(FEATURES - features) if used[name]), None)


def unsupported_response(seen: SeenRequest, feature: Feature, words: str = "") -> Response:
    word = {"tools": "tools", "schema": "response_format json_schema", "images": "image input"}[feature]
    return api_error_response(
        request_form(seen), 400, words or f"{word} is not supported by this model", "unsupported"
    )
