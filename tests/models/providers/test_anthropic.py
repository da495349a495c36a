"""Anthropic's wire: exactly what is sent, and what comes of its events and counts."""

import msgspec
import pytest
from models.asking import WRITE, ask, open_anthropic, question
from msgspec.structs import replace

from septet.domain.messages import Message, Request, ToolCall, Usage
from septet.models.http import HttpClient
from septet.models.providers.anthropic import (
    AnthropicReader,
    AnthropicUsage,
    anthropic_usage,
    cache_marks,
    thoughts_of,
)
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (AnthropicUsage(), Usage()),
        (AnthropicUsage(input_tokens=5), Usage(prompt=5)),
        (AnthropicUsage(cache_read_input_tokens=7), Usage(prompt=7, cached=7)),
        (AnthropicUsage(cache_creation_input_tokens=9), Usage(prompt=9)),
        (AnthropicUsage(output_tokens=3), Usage(completion=3)),
        (AnthropicUsage(5, 7, 9, 3), Usage(prompt=21, cached=7, completion=3)),
    ],
)
def test_cached_tokens_are_part_of_the_prompt_and_what_is_not_counted_is_nothing(
    counts: AnthropicUsage, usage: Usage
) -> None:
    assert anthropic_usage(counts) == usage


CHANGED: dict[str, object] = {"type": "object", "properties": {"verdict": {"type": "string"}}}
MARKED = {"cache_control": {"type": "ephemeral"}}


async def body_of(request: Request) -> dict[str, object]:
    async with serve_mock(in_order(Reply(text="x"))) as server, HttpClient() as wire:
        await ask(open_anthropic(server, wire), request)
    return msgspec.json.decode(server.seen[0].body, type=dict[str, object])


@pytest.mark.anyio
async def test_a_request_is_sent_with_all_that_it_asks_for_and_nothing_else() -> None:
    calls = (
        ToolCall(id="call_1", name="write", arguments='{"path": "a"}'),
        ToolCall(id="call_2", name="write", arguments="[1]"),
    )
    asked = replace(
        question("hello"), tools=(WRITE,), schema=CHANGED, temperature=0.5, max_tokens=77, thread="t"
    )
    answered = (
        Message(role="assistant", text="", calls=calls),
        Message(role="tool", text="written", call="call_1"),
        Message(role="tool", text="", call="call_2"),
    )
    assert await body_of(replace(asked, messages=(*asked.messages, *answered))) == {
        "model": "mock",
        "stream": True,
        "max_tokens": 77,
        "temperature": 0.5,
        "system": [{"type": "text", "text": "You write code.", **MARKED}],
        "tools": [
            {"name": "write", "description": "Write a file.", "input_schema": WRITE.parameters},
            {"name": "reply", "description": "Answer.", "input_schema": CHANGED},
        ],
        "tool_choice": {"type": "any"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hello", **MARKED}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "call_1", "name": "write", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "call_2", "name": "write", "input": {"unreadable": "[1]"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_1",
                        "content": [{"type": "text", "text": "written"}],
                    },
                    {"type": "tool_result", "tool_use_id": "call_2", "content": [], **MARKED},
                ],
            },
        ],
    }


@pytest.mark.anyio
async def test_a_request_without_wishes_is_sent_with_the_longest_answer_and_what_the_api_requires() -> None:
    assert await body_of(Request(role="coder", step=1, messages=(Message(role="assistant", text=""),))) == {
        "model": "mock",
        "stream": True,
        "max_tokens": 64_000,
        "messages": [
            {"role": "assistant", "content": [{"type": "text", "text": "(nothing)", **MARKED}]},
        ],
    }
    assert (await body_of(Request(role="coder", step=1, messages=())))["messages"] == []
    forced = await body_of(replace(question("go"), schema=CHANGED))
    assert forced["tool_choice"] == {"type": "tool", "name": "reply"}


USER, SAID, RESULT = (
    Message(role="user", text="u"),
    Message(role="assistant", text="a"),
    Message(role="tool", text="r", call="c"),
)


@pytest.mark.parametrize(
    ("messages", "marks"),
    [
        ((), set[int]()),
        ((USER,), {0}),
        ((SAID,), {0}),
        ((SAID, USER), {1}),
        ((USER, SAID), {1}),
        ((USER, SAID, RESULT), {0, 2}),
        ((USER, SAID, RESULT, RESULT, SAID, RESULT), {3, 5}),
    ],
)
def test_the_ends_of_this_request_and_the_one_before_are_marked(
    messages: tuple[Message, ...], marks: set[int]
) -> None:
    assert cache_marks(messages) == marks


def read(*events: object) -> AnthropicReader:
    reader = AnthropicReader()
    for event in events:
        reader.feed(msgspec.json.encode(event))
    return reader


def delta(index: int, **fields: str) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


CALL = {
    "type": "content_block_start",
    "index": 3,
    "content_block": {"type": "tool_use", "id": "c", "name": "n"},
}
REDACTED = {
    "type": "content_block_start",
    "index": 2,
    "content_block": {"type": "redacted_thinking", "data": "?"},
}
END = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


def test_thinking_goes_back_unchanged_with_the_calls_that_it_led_to_if_it_is_signed() -> None:
    thoughts = [
        delta(0, thinking="h"),
        delta(0, thinking="m"),
        delta(0, signature="s"),
        delta(1, thinking="no"),
    ]
    answer = read(REDACTED, *thoughts, CALL, delta(3, partial_json="{}"), *END).answer("m", 2.0)
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "?"},
    ]
    assert msgspec.json.decode(answer.replay) == blocks
    assert (answer.reasoning, answer.seconds, answer.stop) == ("hmno", 2.0, "calls")
    assert thoughts_of(Message(role="assistant", text="", replay=answer.replay)) == blocks
    assert thoughts_of(Message(role="assistant", text="", replay='{"reasoning": "hm"}')) == []
    unsigned = read(delta(1, thinking="no"), CALL, *END).answer("m", 0.0)
    assert (unsigned.replay, unsigned.calls) == ("", (ToolCall(id="c", name="n", arguments="{}"),))
    assert read(*thoughts, delta(4, text="x"), *END).answer("m", 0.0).replay == ""


def test_later_counts_replace_earlier_ones_and_wrong_ones_lose_no_answer() -> None:
    start = {
        "type": "message_start",
        "message": {"model": "exact", "usage": {"input_tokens": 9, "output_tokens": 1}},
    }
    text = {"type": "content_block_start", "content_block": {"type": "text", "text": "x"}}
    later = {"type": "message_delta", "usage": {"output_tokens": 4}, "delta": {"stop_reason": "max_tokens"}}
    wrong = {"type": "message_delta", "usage": {"output_tokens": "many"}}
    reader = read(start, text, later, wrong)
    answer = reader.answer("m", 0.0)
    assert (answer.usage, answer.model, answer.text, answer.stop) == (
        Usage(prompt=9, completion=4),
        "exact",
        "x",
        "length",
    )
    assert reader.parts.size == 1
    assert not reader.is_complete
    assert read(*END).is_complete
