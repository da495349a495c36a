"""The OpenAI wire: exactly what is sent, and how pieces of an answer become calls."""

import msgspec
import pytest
from models.asking import WRITE, ask, open_openai, question
from msgspec.structs import replace

from septet.domain.messages import Delta, Message, Request, ToolCall, Usage
from septet.models.faults import InvalidAnswer
from septet.models.http import HttpClient
from septet.models.providers.openai import OpenAIReader, is_strict, message_bytes, openai_options
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio

CLOSED: dict[str, object] = {
    "type": "object",
    "properties": {"verdict": {"type": "string"}},
    "required": ["verdict"],
    "additionalProperties": False,
}
ASKED = Request(role="coder", step=1, messages=(Message(role="user", text="hi"),))
FULL = replace(
    ASKED, tools=(WRITE,), schema=CLOSED, temperature=0.5, max_tokens=77, thread="chat/coder", timeout=9.0
)
TOOL = {
    "type": "function",
    "function": {"name": "write", "description": "Write a file.", "parameters": WRITE.parameters},
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "reply", "schema": CLOSED, "strict": True}}


async def test_a_request_is_sent_with_all_that_it_asks_for_and_nothing_else() -> None:
    async with serve_mock() as server, HttpClient() as wire:
        model = open_openai(server, wire)
        await ask(model, replace(question("hello"), **{name: getattr(FULL, name) for name in ASKS}))
    assert msgspec.json.decode(server.seen[0].body) == {
        "model": "mock",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 77,
        "prompt_cache_key": "chat/coder",
        "tools": [TOOL],
        "response_format": FORMAT,
        "messages": [
            {"role": "system", "content": "You write code."},
            {"role": "user", "content": "hello"},
        ],
    }


ASKS = ("tools", "schema", "temperature", "max_tokens", "thread")
SHORTEST = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize(
    ("request_", "quirks", "fields"),
    [
        (ASKED, (), SHORTEST),
        (ASKED, ("stream_options",), {"model": "m", "stream": True}),
        (replace(ASKED, max_tokens=5), (), {**SHORTEST, "max_tokens": 5}),
        (replace(ASKED, max_tokens=5), ("max_tokens",), {**SHORTEST, "max_completion_tokens": 5}),
        (replace(ASKED, temperature=0.5), ("temperature",), SHORTEST),
        (replace(ASKED, thread="t"), ("prompt_cache_key",), SHORTEST),
        (replace(ASKED, draws=4), (), {**SHORTEST, "n": 4}),
        (replace(ASKED, draws=4), ("n",), SHORTEST),
        (replace(ASKED, tools=(WRITE,)), (), {**SHORTEST, "tools": [TOOL]}),
    ],
)
def test_a_parameter_that_a_server_rejects_is_left_out_or_has_its_other_name(
    request_: Request, quirks: tuple[str, ...], fields: dict[str, object]
) -> None:
    assert openai_options(request_, "m", frozenset(quirks)) == fields


INNER: dict[str, object] = {"type": "object", "properties": dict[str, object]()}
OPEN_INSIDE: dict[str, object] = {**CLOSED, "properties": {"verdict": INNER}}


SCHEMAS: list[tuple[object, bool]] = [
    (CLOSED, True),
    ({"type": "string"}, True),
    ("text", True),
    ([CLOSED, {"type": "string"}], True),
    ({"type": "object", "additionalProperties": False}, True),
    ({**CLOSED, "additionalProperties": True}, False),
    ({**CLOSED, "required": []}, False),
    ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, False),
    (OPEN_INSIDE, False),
    ([CLOSED, OPEN_INSIDE], False),
    ({"anyOf": [CLOSED, OPEN_INSIDE]}, False),
]


@pytest.mark.parametrize(("schema", "strict"), SCHEMAS)
def test_a_schema_is_strict_if_every_object_in_it_is_closed_and_requires_its_fields(
    schema: object, strict: bool
) -> None:
    assert is_strict(schema) is strict


def read(*chunks: object) -> OpenAIReader:
    reader = OpenAIReader()
    for chunk in chunks:
        reader.feed(msgspec.json.encode(chunk))
    return reader


def piece(call: str, arguments: str = "", index: int | None = None, name: str = "") -> dict[str, object]:
    fields: dict[str, object] = {"function": {"name": name or None, "arguments": arguments}}
    fields |= {"id": call} if call else {}
    fields |= {} if index is None else {"index": index}
    return {"choices": [{"delta": {"tool_calls": [fields]}}]}


END: dict[str, object] = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}


def test_pieces_of_calls_without_an_index_belong_to_the_call_that_began_last() -> None:
    reader = read(
        piece("a", '{"x"', name="one"), piece("", ": 1}"), piece("b", "{", name="two"), piece("", "}"), END
    )
    assert reader.answer("m", 0.0).calls == (
        ToolCall(id="a", name="one", arguments='{"x": 1}'),
        ToolCall(id="b", name="two", arguments="{}"),
    )
    assert reader.parts.size == len('{"x": 1}{}')


def test_calls_are_in_the_order_of_their_indices_and_a_missing_id_is_made_up() -> None:
    reader = read(piece("b", "{}", 1, "two"), piece("", "{}", 0, "one"), END)
    assert reader.answer("m", 0.0).calls == (
        ToolCall(id="call_0", name="one", arguments="{}"),
        ToolCall(id="b", name="two", arguments="{}"),
    )
    assert read(piece("", "{}", name="one"), END).answer("m", 0.0).calls[0].id == "call_0"


def test_parts_of_text_and_a_refusal_are_the_text() -> None:
    chunks = [
        {"choices": [{"delta": {"content": [{"text": "I "}, {"text": "can"}]}}]},
        {"choices": [{"delta": {"refusal": "not"}}], "model": "exact"},
        {"choices": [{"delta": None, "finish_reason": "stop"}]},
        {"choices": [{"index": 1, "delta": {"content": "other"}}], "model": "another"},
    ]
    answer = read(*chunks).answer("m", 1.5)
    assert (answer.text, answer.model, answer.seconds, answer.stop) == ("I cannot", "exact", 1.5, "finished")


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 2}, Usage(prompt=7, completion=2)),
        ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}}, Usage(prompt=7, cached=5)),
        ({"prompt_tokens": 7, "prompt_tokens_details": {}}, Usage(prompt=7)),
        ({"prompt_tokens": "many"}, Usage()),
        (None, Usage()),
    ],
)
def test_token_counts_that_cannot_be_read_lose_no_answer(usage: object, counted: Usage) -> None:
    said = {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": usage}
    assert read(said).answer("m", 0.0).usage == counted


def test_reasoning_goes_back_only_with_calls_and_in_the_field_in_which_it_came() -> None:
    for field in ("reasoning", "reasoning_content"):
        thought: object = {"choices": [{"delta": {field: "hm"}}]}
        answer = read(thought, piece("a", "{}", 0, "one"), END).answer("m", 0.0)
        assert msgspec.json.decode(answer.replay) == {field: "hm"}
        said = {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}
        assert read(thought, said).answer("m", 0.0).replay == ""
        back = Message(role="assistant", text="", calls=answer.calls, replay=answer.replay)
        sent = msgspec.json.decode(message_bytes(back, []))
        assert sent == {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "one", "arguments": "{}"}},
            ],
            field: "hm",
        }
        assert field not in msgspec.json.decode(message_bytes(back, [], frozenset({field})))
        foreign = replace(back, replay='[{"type": "thinking"}]')
        assert field not in msgspec.json.decode(message_bytes(foreign, []))


def test_an_answer_that_does_not_say_why_it_ended_is_none() -> None:
    with pytest.raises(InvalidAnswer, match="without a finish reason"):
        read({"choices": [{"delta": {"content": "x"}}]}).answer("m", 0.0)


def choice(index: int, text: str) -> dict[str, object]:
    return {"choices": [{"index": index, "delta": {"content": text}}]}


def ended(index: int) -> dict[str, object]:
    return {"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]}


def counted(prompt: int, completion: int) -> dict[str, object]:
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


PIECES = (choice(2, "th"), choice(0, "one"), choice(1, "two"), choice(2, "ird"))


@pytest.mark.parametrize(
    "ends",
    [
        (ended(1), ended(0), ended(2), counted(9, 12)),
        (ended(1), counted(9, 3), ended(0), counted(9, 4), ended(2), counted(9, 5)),
    ],
)
def test_several_answers_come_apart_and_their_prompt_counts_once(ends: tuple[object, ...]) -> None:
    answer = read(*PIECES, *ends).answer("m", 0.0)
    assert answer.texts == ("one", "two", "third")
    assert answer.usage == Usage(prompt=9, completion=12)


def test_of_several_answers_only_the_first_is_shown_while_they_come() -> None:
    reader = read(*PIECES)
    assert reader.parts.size == len("onetwothird")
    assert reader.parts.take_delta() == Delta(text="one")


@pytest.mark.parametrize(
    ("message", "draws"),
    [
        ("Only n = 1 is supported", [3, None]),
        ("n_cmpl must be at most 2", [3, None]),
        ("the number of completions must be 1", [3, None]),
    ],
)
async def test_a_server_that_gives_one_answer_only_is_asked_for_one(
    message: str, draws: list[int | None]
) -> None:
    async with serve_mock() as server, HttpClient() as wire:
        server.refused_parameter, server.refusal = '"n":', message
        _, answer = await ask(open_openai(server, wire), replace(question("hello"), draws=3))
    sent = [msgspec.json.decode(one.body, type=dict[str, object]).get("n") for one in server.seen]
    assert sent == draws
    assert answer.others == ()
