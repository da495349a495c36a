"""The server's side of the Anthropic messages protocol."""

from collections.abc import Iterator

import msgspec

from septet.domain.messages import StopReason
from septet.testing.openai_form import Fields, cut
from septet.testing.replies import Reply

FINISH: dict[StopReason, str] = {
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
    stop = FINISH[reply.ending]
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
        "stop_reason": FINISH[reply.ending],
        "usage": {"input_tokens": reply.usage.prompt, "output_tokens": reply.usage.completion},
    }


def anthropic_error(message: str, code: str) -> Fields:
    return {"type": "error", "error": {"type": code, "message": message}}
