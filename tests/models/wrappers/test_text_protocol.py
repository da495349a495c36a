"""Servers without tools or schemas: the same contract, in plain words."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.asking import WIRES, WRITE, ask, open_openai, question
from msgspec.structs import replace

from septet.domain.messages import Message, Request, ToolCall
from septet.models.faults import InvalidAnswer, RequestRejected
from septet.models.http import HttpClient
from septet.models.wrappers.text_protocol import (
    TextProtocol,
    arguments_error,
    parse_calls,
    parse_json,
    without_features,
)
from septet.testing.replies import Feature, Reply, in_order
from septet.testing.server import MockServer, serve_mock

pytestmark = pytest.mark.anyio

NONE: frozenset[Feature] = frozenset()
SCHEMA: dict[str, object] = {"type": "object", "properties": {"verdict": {}}, "required": ["verdict"]}
USE = '```tool\n{"name": "write", "arguments": {"path": "a.py", "content": "x = \\"ä\\""}}\n```'


@pytest.fixture
async def wire() -> AsyncIterator[HttpClient]:
    async with HttpClient() as wire:
        yield wire


def texts(server: MockServer) -> list[str]:
    return [str(message["content"]) for message in server.seen[-1].messages]


async def test_tools_are_used_through_blocks(wire: HttpClient) -> None:
    async with serve_mock(
        in_order(Reply(), Reply(text=f"I write it.\n{USE}\n{USE}")), features=NONE
    ) as server:
        _, answer = await ask(
            TextProtocol(open_openai(server, wire)), replace(question("go"), tools=(WRITE,))
        )
    assert answer.text == "I write it."
    assert answer.stop == "calls"
    assert [call.id for call in answer.calls] == ["call_1", "call_2"]
    assert msgspec.json.decode(answer.calls[0].arguments) == {"path": "a.py", "content": 'x = "ä"'}
    assert "tools" not in server.seen[-1].fields
    assert "Write a file." in texts(server)[0]


@pytest.mark.parametrize("kind", list(WIRES))
async def test_who_cannot_see_is_told_that_there_was_a_picture(wire: HttpClient, kind: str) -> None:
    async def load(address: str) -> bytes:
        return b"\x89PNG\r\n\x1a\n"

    message = Message(role="user", text="look", images=("0" * 64, "1" * 64))
    request = Request(role="reviewer", step=1, messages=(message,))
    async with serve_mock(in_order(Reply(text="seen")), features=frozenset({"tools"})) as server:
        model = TextProtocol(WIRES[kind](server, wire, load))
        await ask(model, request)
        await ask(model, request)
    assert len(server.seen) == 3, "what the server lacks is remembered"
    assert b"image" in server.seen[0].body
    assert b"image" not in server.seen[2].body
    assert b"2 pictures that you cannot see" in server.seen[2].body


@pytest.mark.parametrize(
    "words", ["messages[0].content must be a string", "Input should be a valid string", ""]
)
async def test_a_request_with_pictures_that_is_refused_for_whatever_reason_goes_again_in_words(
    wire: HttpClient, words: str
) -> None:
    async def load(address: str) -> bytes:
        return b"\x89PNG\r\n\x1a\n"

    message = Message(role="user", text="look", images=("0" * 64,))
    request = Request(role="coder", step=1, messages=(message,), tools=(WRITE,))
    async with serve_mock(in_order(Reply(text="seen")), features=frozenset({"tools"})) as server:
        server.unsupported_message = words
        _, answer = await ask(TextProtocol(open_openai(server, wire, load)), request)
    assert answer.text == "seen"
    assert [b"image_url" in seen.body for seen in server.seen] == [True, False]
    assert b"1 picture that you cannot see" in server.seen[-1].body
    assert "tools" in server.seen[-1].fields, "what the server has is still used"


async def test_a_refusal_that_has_nothing_to_do_with_pictures_stays_one(wire: HttpClient) -> None:
    async def load(address: str) -> bytes:
        return b"\x89PNG\r\n\x1a\n"

    message = Message(role="user", text="look", images=("0" * 64,))
    request = Request(role="coder", step=1, messages=(message,), tools=(WRITE,))
    async with serve_mock(features=NONE) as server:
        server.unsupported_message = "no such model"
        with pytest.raises(RequestRejected, match="no such model"):
            await ask(TextProtocol(open_openai(server, wire, load)), request)
    assert len(server.seen) == 2


async def test_a_schema_is_asked_for_in_words(wire: HttpClient) -> None:
    said = 'Sure!\n```json\n{"verdict": "accept"}\n```'
    async with serve_mock(in_order(Reply(), Reply(text=said)), features=NONE) as server:
        model = TextProtocol(open_openai(server, wire))
        _, answer = await ask(model, replace(question("go"), schema=SCHEMA))
        await ask(model, replace(question("again"), schema=SCHEMA))
    assert msgspec.json.decode(answer.text) == {"verdict": "accept"}
    assert len(server.seen) == 3, "what the server lacks is remembered"
    assert "response_format" not in server.seen[-1].fields


@pytest.mark.parametrize("wrong", ["no JSON", '{"verdict": ', '{"other": 1}', "```json\n[]\n```"])
async def test_what_cannot_be_read_is_asked_for_once_more(wire: HttpClient, wrong: str) -> None:
    script = in_order(Reply(), Reply(text=wrong), Reply(text='{"verdict": "revise"}'))
    async with serve_mock(script, features=NONE) as server:
        deltas, answer = await ask(
            TextProtocol(open_openai(server, wire)), replace(question("go"), schema=SCHEMA)
        )
    assert msgspec.json.decode(answer.text) == {"verdict": "revise"}
    assert "could not be read" in texts(server)[-1]
    assert answer.usage.prompt == 22
    assert any(delta.restarted for delta in deltas)


async def test_what_stays_unreadable_is_a_fault(wire: HttpClient) -> None:
    async with serve_mock(in_order(Reply(), Reply(text="no JSON")), features=NONE) as server:
        with pytest.raises(InvalidAnswer, match="in the requested form"):
            await ask(TextProtocol(open_openai(server, wire)), replace(question("go"), schema=SCHEMA))
    assert len(server.seen) == 3


async def test_an_unknown_tool_is_answered_with_the_tools_there_are(wire: HttpClient) -> None:
    unknown = USE.replace('"write"', '"rm"')
    async with serve_mock(in_order(Reply(), Reply(text=unknown), Reply(text=USE)), features=NONE) as server:
        _, answer = await ask(
            TextProtocol(open_openai(server, wire)), replace(question("go"), tools=(WRITE,))
        )
    assert "there is no tool 'rm', only write" in texts(server)[-1]
    assert answer.calls[0].name == "write"


async def test_results_of_tools_go_back_as_words(wire: HttpClient) -> None:
    call = ToolCall(id="call_1", name="write", arguments='{"path": "a"}')
    messages = (
        *question("go").messages,
        Message(role="assistant", text="", calls=(call,)),
        Message(role="tool", text="written", call="call_1"),
    )
    async with serve_mock(features=NONE) as server:
        request = Request(role="coder", step=2, messages=messages, tools=(WRITE,))
        await ask(TextProtocol(open_openai(server, wire)), request)
    assert [message["role"] for message in server.seen[-1].messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert texts(server)[-2].startswith("```tool")
    assert texts(server)[-1] == "Result of call_1:\nwritten"


async def test_a_server_that_has_everything_is_asked_as_usual(wire: HttpClient) -> None:
    async with serve_mock() as server:
        await ask(
            TextProtocol(open_openai(server, wire)), replace(question("go"), tools=(WRITE,), schema=SCHEMA)
        )
    assert len(server.seen) == 1
    assert "tools" in server.seen[0].fields


@given(text=st.text(max_size=200))
def test_any_text_at_all_is_read_or_refused(text: str) -> None:
    assert isinstance(parse_json(text, SCHEMA), str)
    assert isinstance(parse_calls(text, {"write"}), list | str)


PAIR: dict[str, object] = {"type": "object", "required": ["a", "b"]}
ALL = frozenset({"tools", "schema", "images"})
PLAIN = question("go", "done")
CALLED = Message(
    role="assistant", text="Now.", calls=(ToolCall(id="c1", name="write", arguments='{"path": "a"}'),)
)
WRITTEN = Message(role="tool", text="written", call="c1")
SEEN = Message(role="user", text="look", images=("0" * 64,))


def test_a_request_that_uses_nothing_that_is_lacking_is_the_same_object() -> None:
    for asked in (PLAIN, replace(PLAIN, tools=(WRITE,), schema=PAIR)):
        assert without_features(asked, frozenset()) is asked
    assert without_features(PLAIN, ALL) is PLAIN


def test_what_is_lacking_is_said_in_words_in_one_system_prompt() -> None:
    system = Message(role="system", text="Be brief.")
    asked = replace(
        PLAIN, messages=(*PLAIN.messages, CALLED, WRITTEN, system, SEEN), tools=(WRITE,), schema=PAIR
    )
    plain = without_features(asked, ALL)
    assert (plain.tools, plain.schema) == ((), None)
    first, *turns = plain.messages
    assert first.role == "system"
    assert first.text.startswith("You write code.\n\nBe brief.\n\n")
    assert f"- write: Write a file. {msgspec.json.encode(WRITE.parameters).decode()}" in first.text
    assert msgspec.json.encode(PAIR).decode() in first.text
    assert turns == [
        Message(role="user", text="go"),
        Message(role="assistant", text="done"),
        Message(role="assistant", text='Now.\n\n```tool\n{"name": "write", "arguments": {"path": "a"}}\n```'),
        Message(role="user", text="Result of c1:\nwritten"),
        Message(role="user", text="look\n\n(1 picture that you cannot see)"),
    ]


@pytest.mark.parametrize("history", [(CALLED,), (WRITTEN,)])
def test_calls_of_the_past_are_words_too_when_no_tool_is_offered(history: tuple[Message, ...]) -> None:
    asked = replace(PLAIN, messages=(*PLAIN.messages, *history))
    plain = without_features(asked, frozenset({"tools"}))
    assert plain.messages[0] == asked.messages[0]
    assert not any(message.calls or message.call for message in plain.messages)
    assert without_features(asked, frozenset({"schema", "images"})) is asked


def test_pictures_alone_change_only_their_messages() -> None:
    asked = replace(PLAIN, messages=(*PLAIN.messages, SEEN, replace(SEEN, text="", images=("0" * 64,) * 2)))
    *before, one, two = without_features(asked, frozenset({"images"})).messages
    assert tuple(before) == PLAIN.messages
    assert (one.text, two.text) == (
        "look\n\n(1 picture that you cannot see)",
        "(2 pictures that you cannot see)",
    )
    assert (one.images, two.images) == ((), ())


BLOCK = '```tool\n{"name": "write", "arguments": {"path": "a"}}\n```'


def test_calls_are_read_in_order_and_the_first_error_is_said() -> None:
    assert parse_calls(f"First.\n{BLOCK}\nThen.\n{BLOCK}", {"write"}) == [
        ToolCall(id="call_1", name="write", arguments='{"path":"a"}'),
        ToolCall(id="call_2", name="write", arguments='{"path":"a"}'),
    ]
    assert parse_calls("nothing", {"write"}) == []
    assert parse_calls(BLOCK, {"read", "run"}) == "there is no tool 'write', only read, run"


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ('{"a": 1, "b": 2}', '{"a": 1, "b": 2}'),
        ('Here: {"a": {"x": 1}, "b": 2}. Done.', '{"a": {"x": 1}, "b": 2}'),
        ('{no}\n```json\n{"a": 1, "b": 2}\n```', '{"a": 1, "b": 2}'),
        ('{"a": 1}', "'b' is missing"),
        ("{}", "'a' is missing"),
    ],
)
def test_an_object_is_found_in_an_answer_or_what_is_missing_is_named(text: str, body: str) -> None:
    assert parse_json(text, PAIR) == body
    assert parse_json("no object", PAIR).startswith("no JSON object: ")


@pytest.mark.parametrize(
    ("arguments", "wrong"), [("", False), ('{"a": 1}', False), ("[1]", True), ('{"a"', True)]
)
def test_arguments_are_an_object_or_what_is_wrong_is_said(arguments: str, wrong: bool) -> None:
    error = arguments_error(ToolCall(id="c", name="write", arguments=arguments))
    assert isinstance(error, str)
    assert bool(error) is wrong
