"""Builds the response for a reply in the form of OpenAI or Anthropic, or with a fault."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec.structs import replace

from septet.common.values import Value
from septet.domain.messages import StopReason, ToolCall, Usage
from septet.testing.replies import FEATURES, Fault, Feature, ReceivedRequest, Reply

Fields = dict[str, object]

OPENAI_FINISH: dict[StopReason, str] = {
    "finished": "stop",
    "length": "length",
    "calls": "tool_calls",
    "filtered": "content_filter",
}


def sse(fields: Fields) -> bytes:
    return b"data: " + msgspec.json.encode(fields) + b"\n\n"


def chunk(choices: list[Fields], usage: Usage | None = None) -> bytes:
    fields: Fields = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "mock",
        "choices": choices,
    }
    return sse(fields if usage is None else {**fields, "usage": usage_fields(usage)})


def delta(fields: Fields, finish: str | None = None) -> bytes:
    return chunk([{"index": 0, "delta": fields, "finish_reason": finish}])


def openai_events(reply: Reply) -> Iterator[bytes]:
    """Yield the server-sent events of a streamed reply."""
    yield delta({"role": "assistant", "content": ""})
    for part in cut(reply.reasoning, reply.piece):
        yield delta({"reasoning_content": part})
    for part in cut(reply.text, reply.piece):
        yield delta({"content": part})
    for index, call in enumerate(reply.calls):
        head = {"index": index, "id": call.id, "type": "function"}
        yield delta({"tool_calls": [{**head, "function": {"name": call.name, "arguments": ""}}]})
        for part in cut(call.arguments, reply.piece):
            yield delta({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield delta({}, OPENAI_FINISH[reply.ending])
    yield chunk([], reply.usage)
    yield b"data: [DONE]\n\n"


def ollama_events(reply: Reply) -> Iterator[bytes]:
    """Yield the events as Ollama sends them: whole calls, `reasoning`, and nothing about a cache."""
    for part in cut(reply.reasoning, reply.piece):
        yield delta({"role": "assistant", "content": "", "reasoning": part})
    for part in cut(reply.text, reply.piece):
        yield delta({"role": "assistant", "content": part})
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": call.arguments}
        made = {"id": call.id, "index": index, "type": "function", "function": function}
        yield delta({"role": "assistant", "content": "", "tool_calls": [made]})
    yield delta({"role": "assistant", "content": ""}, OPENAI_FINISH[reply.ending])
    yield chunk([], reply.usage).replace(CACHE_DETAILS % reply.usage.cached, b"")
    yield b"data: [DONE]\n\n"


CACHE_DETAILS = b',"prompt_tokens_details":{"cached_tokens":%d}'


def openai_answer(reply: Reply) -> Fields:
    """The response to a request without `stream`."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    message: Fields = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if calls:
        message["tool_calls"] = calls
    finish = OPENAI_FINISH[reply.ending]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "mock",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage_fields(reply.usage),
    }


def usage_fields(usage: Usage) -> Fields:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def openai_error(message: str, code: str) -> Fields:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code}}


def cut(text: str, length: int) -> Iterator[str]:
    return (text[start : start + length] for start in range(0, len(text), length))


ANTHROPIC_FINISH: dict[StopReason, str] = {
    "finished": "end_turn",
    "length": "max_tokens",
    "calls": "tool_use",
    "filtered": "refusal",
}


def event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: ".encode() + msgspec.json.encode({"type": kind, **fields}) + b"\n\n"


def anthropic_events(reply: Reply) -> Iterator[bytes]:
    """Yield the server-sent events of a streamed reply."""
    usage = {
        "input_tokens": reply.usage.prompt - reply.usage.cached,
        "cache_read_input_tokens": reply.usage.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    yield event(
        "message_start", message={"id": "msg_1", "role": "assistant", "model": "mock", "usage": usage}
    )
    for index, block in enumerate(content_blocks(reply)):
        yield from block_events(index, block, reply.piece)
    stop = ANTHROPIC_FINISH[reply.ending]
    yield event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": reply.usage.completion})
    yield event("message_stop")


def content_blocks(reply: Reply) -> Iterator[tuple[Fields, str, str]]:
    """Yield for each content block its start, the field of its deltas, and its text."""
    if reply.reasoning:
        yield {"type": "thinking", "thinking": "", "signature": ""}, "thinking", reply.reasoning
    if reply.text:
        yield {"type": "text", "text": ""}, "text", reply.text
    for call in reply.calls:
        yield (
            {"type": "tool_use", "id": call.id, "name": call.name, "input": {}},
            "partial_json",
            call.arguments,
        )


def block_events(index: int, block: tuple[Fields, str, str], length: int) -> Iterator[bytes]:
    opening, field, text = block
    kind = "input_json_delta" if field == "partial_json" else f"{field}_delta"
    yield event("content_block_start", index=index, content_block=opening)
    for part in cut(text, length):
        yield event("content_block_delta", index=index, delta={"type": kind, field: part})
    if field == "thinking":
        signature = {"type": "signature_delta", "signature": "signed"}
        yield event("content_block_delta", index=index, delta=signature)
    yield event("content_block_stop", index=index)


def anthropic_answer(reply: Reply) -> Fields:
    content: list[Fields] = [{"type": "text", "text": reply.text}] if reply.text else []
    for call in reply.calls:
        arguments = msgspec.json.decode(call.arguments or "{}")
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return {
        "id": "msg_1",
        "role": "assistant",
        "model": "mock",
        "content": content,
        "stop_reason": ANTHROPIC_FINISH[reply.ending],
        "usage": {"input_tokens": reply.usage.prompt, "output_tokens": reply.usage.completion},
    }


def anthropic_error(message: str, code: str) -> Fields:
    return {"type": "error", "error": {"type": code, "message": message}}


End = Literal["whole", "closed", "reset", "hung"]


class Response(Value):
    """`ending` other than "whole" leaves the body unfinished; status 0 sends nothing at all."""

    status: int
    body: tuple[bytes, ...]
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    ending: End = "whole"
    pause: float = 0.0
    delay: float = 0.0


class Form(Value):
    """Renders replies and errors in one protocol; the last `tail` events of a stream end it."""

    pieces: Callable[[Reply], Iterator[bytes]]
    whole: Callable[[Reply], dict[str, object]]
    error: Callable[[str, str], dict[str, object]]
    tail: int


OPENAI = Form(pieces=openai_events, whole=openai_answer, error=openai_error, tail=3)
OLLAMA = Form(pieces=ollama_events, whole=openai_answer, error=openai_error, tail=3)
ANTHROPIC = Form(
    pieces=anthropic_events,
    whole=anthropic_answer,
    error=anthropic_error,
    tail=2,
)
TRUNCATED_ARGUMENTS = '{"path": "main.py", "content": "print('


OLLAMA_PREFIX = "/ollama/"
"""The beginning of the paths below which the server speaks as Ollama does."""


def request_form(request: ReceivedRequest) -> Form:
    if request.path.startswith(OLLAMA_PREFIX):
        return OLLAMA
    return ANTHROPIC if request.path.split("?")[0].endswith("/messages") else OPENAI


def plain_response(request: ReceivedRequest, reply: Reply) -> Response:
    form = request_form(request)
    if request.fields.get("stream") is not True:
        return Response(status=200, body=(msgspec.json.encode(form.whole(reply)),), delay=reply.delay)
    events, kind = render_reply(form, reply), "text/event-stream"
    return Response(status=200, body=events, kind=kind, pause=reply.pause, delay=reply.delay)


@lru_cache(maxsize=64)
def render_reply(form: Form, reply: Reply) -> tuple[bytes, ...]:
    return tuple(form.pieces(reply))


class MockExchange(Value):
    """A request, its good reply, and the protocol of both."""

    request: ReceivedRequest
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


def faulty(fault: Fault, request: ReceivedRequest, reply: Reply, retry_after: str) -> Response:
    """Return the response with this fault."""
    return FAULTS[fault](
        MockExchange(request=request, form=request_form(request), reply=reply, retry_after=retry_after)
    )


def rate_limited(exchange: MockExchange) -> Response:
    header = ("Retry-After", exchange.retry_after)
    return api_error_response(exchange.form, 429, "slow down", "rate_limit_exceeded", (header,))


def server_error(exchange: MockExchange) -> Response:
    return api_error_response(exchange.form, 500, "something broke", "internal_error")


def unavailable(exchange: MockExchange) -> Response:
    return api_error_response(exchange.form, 503, "overloaded", "overloaded_error")


def context_too_long(exchange: MockExchange) -> Response:
    text = "This model's maximum context length is 100 tokens: prompt is too long"
    return api_error_response(exchange.form, 400, text, "context_length_exceeded")


def truncated_response(exchange: MockExchange) -> Response:
    next_event = exchange.good.body[exchange.half]
    return exchange.with_body((*exchange.first_half, next_event[: len(next_event) // 2]), "closed")


def no_choices(exchange: MockExchange) -> Response:
    if exchange.form is ANTHROPIC:
        return exchange.with_body(render_reply(exchange.form, Reply()))
    return exchange.with_body((chunk([]), chunk([], Usage(prompt=11)), b"data: [DONE]\n\n"))


FAULTS: dict[Fault, Callable[[MockExchange], Response]] = {
    "rate limited": rate_limited,
    "server error": server_error,
    "unavailable": unavailable,
    "context too long": context_too_long,
    "reset": lambda exchange: Response(status=0, body=(), ending="reset"),
    "reset midway": lambda exchange: exchange.with_body(exchange.first_half, "reset"),
    "truncated": truncated_response,
    "malformed": lambda exchange: exchange.with_body((*exchange.first_half, b'data: {"choices": [{"del\n\n')),
    "html": lambda exchange: Response(status=200, body=(b"<html>Please log in</html>",), kind="text/html"),
    "no choices": no_choices,
    "null content": lambda exchange: exchange.with_body(render_reply(exchange.form, Reply())),
    "bad arguments": lambda exchange: plain_response(
        exchange.request, with_broken_call(exchange.request, exchange.reply)
    ),
    "stall": lambda exchange: Response(status=0, body=(), ending="hung"),
    "stall midway": lambda exchange: exchange.with_body(exchange.first_half, "hung"),
    "no finish reason": lambda exchange: exchange.with_body(exchange.good.body[: -exchange.form.tail]),
    "filtered": lambda exchange: plain_response(exchange.request, Reply(stop="filtered")),
}


def with_broken_call(request: ReceivedRequest, reply: Reply) -> Reply:
    """Truncate the arguments of the reply's first call, or add such a call of the first tool offered."""
    call = reply.calls[0] if reply.calls else ToolCall(id="call_1", name=first_tool(request), arguments="")
    broken = replace(call, arguments=TRUNCATED_ARGUMENTS)
    return replace(reply, calls=(broken, *reply.calls[1:]))


def first_tool(request: ReceivedRequest) -> str:
    tools = msgspec.convert(request.fields.get("tools", []), list[dict[str, object]])
    if not tools:
        return "write"
    function = tools[0].get("function", tools[0])
    return msgspec.convert(function, dict[str, object]).get("name", "write").__str__()


def api_error_response(
    form: Form, status: int, message: str, code: str, headers: tuple[tuple[str, str], ...] = ()
) -> Response:
    return Response(status=status, body=(msgspec.json.encode(form.error(message, code)),), headers=headers)


def missing_feature(request: ReceivedRequest, features: frozenset[Feature]) -> Feature | None:
    """Return a feature that the request uses and this server does not support."""
    fields = request.fields
    used: dict[Feature, bool] = {
        "tools": "tools" in fields,
        "schema": "response_format" in fields,
        "images": b'"image_url"' in request.body or b'"type":"image"' in request.body,
    }
    return next((name for name in sorted(FEATURES - features) if used[name]), None)


def unsupported_response(request: ReceivedRequest, feature: Feature, message: str = "") -> Response:
    if request_form(request) is OLLAMA and not message:
        message = f"registry.ollama.ai/library/mock:latest does not support {feature}"
    name = {"tools": "tools", "schema": "response_format json_schema", "images": "image input"}[feature]
    return api_error_response(
        request_form(request), 400, message or f"{name} is not supported by this model", "unsupported"
    )
