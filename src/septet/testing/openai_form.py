"""The server's side of the OpenAI chat-completions protocol."""

from collections.abc import Iterator

import msgspec

from septet.domain.messages import StopReason, Usage
from septet.testing.replies import Reply

Fields = dict[str, object]

FINISH: dict[StopReason, str] = {
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
    yield delta({}, FINISH[reply.ending])
    yield chunk([], reply.usage)
    yield b"data: [DONE]\n\n"


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
    finish = FINISH[reply.ending]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
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
