"""Thoughts are not the answer, and half an answer is not a whole one."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.asking import WIRES, WRITE, Open, ask, open_anthropic, open_openai, question
from msgspec.structs import replace

from septet.domain.messages import Answer, Delta, Message, Request, ToolCall
from septet.models.faults import RequestRejected
from septet.models.http import HttpClient
from septet.models.wrappers.continuation import (
    MAX_PARTS,
    Continuation,
    ThoughtStream,
    join_continuation,
    split_thoughts,
)
from septet.models.wrappers.retry import RetryPolicy
from septet.models.wrappers.text_protocol import ArgumentRepair
from septet.models.wrappers.wrapper_stack import Candidate, make_resilient
from septet.ports import Model
from septet.testing.replies import ReceivedRequest, Reply, in_order
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio

CALL = ToolCall(id="c1", name="write", arguments='{"path": "a.py", "content": "x"}')


@pytest.fixture
async def wire() -> AsyncIterator[HttpClient]:
    async with HttpClient() as wire:
        yield wire


@pytest.fixture(params=list(WIRES))
def opened(request: pytest.FixtureRequest) -> Open:
    return WIRES[str(request.param)]


def resilient(model: Model) -> Model:
    return make_resilient([Candidate("mock", model)], RetryPolicy(first_wait=0.01), lambda _: None)


FENCE = "```\n"
CODE = 'tag = "<think>no</think>"\n'


@pytest.mark.parametrize(
    ("text", "said", "thoughts"),
    [
        ("<think>a\nb</think>\n\n42", "42", ["a\nb"]),
        ("  <thinking>a</thinking>42", "42", ["a"]),
        ("<think></think>\n42", "42", []),
        ("<think>a</think><think>b</think>42", "42", ["a", "b"]),
        ("first a\nthen b\n</think>\n\n42", "42", ["first a\nthen b"]),
        ("Now:\n<think>\nhm\n</think>\n42", "Now:\n42", ["<think>\nhm\n</think>"]),
        ("<think>never closed", "", ["never closed"]),
        (f"```python a.py\n{CODE}```", f"```python a.py\n{CODE}```", []),
        ("```html a.html\n<think>\nx\n</think>\n```\n", "```html a.html\n<think>\nx\n</think>\n```\n", []),
        ("It strips `</think>` from\nthe text.", "It strips `</think>` from\nthe text.", []),
        ("42", "42", []),
        (
            f"{FENCE}a = 1\n{FENCE}\n<think>\nhm\n</think>\n42",
            f"{FENCE}a = 1\n{FENCE}\n42",
            ["<think>\nhm\n</think>"],
        ),
    ],
)
def test_thoughts_are_told_apart_from_what_is_said(text: str, said: str, thoughts: list[str]) -> None:
    assert split_thoughts(text) == (said, thoughts)


@given(st.integers(1, 9), st.sampled_from(["<think>why < not</think>\n42", "42 <think>", " \n<b>42", "<thi"]))
def test_a_watcher_sees_the_same_text_and_thoughts(size: int, text: str) -> None:
    stream = ThoughtStream()
    pieces = [stream.read(Delta(text=text[at : at + size])) for at in range(0, len(text), size)]
    said, thoughts = split_thoughts(text)
    if said != "<thi":  # what may yet become a tag waits for the whole answer
        assert "".join(piece.text for piece in pieces).strip() == said.strip()
    assert "".join(piece.reasoning for piece in pieces) == "".join(thoughts)


async def test_thoughts_in_the_text_are_reasoning(opened: Open, wire: HttpClient) -> None:
    reply = Reply(text="<think>Is it `40`?</think>\n\n42", piece=3)
    async with serve_mock(in_order(reply)) as server:
        deltas, answer = await ask(resilient(opened(server, wire, None)), question("go"))
    assert (answer.text, answer.reasoning) == ("42", "Is it `40`?")
    assert "".join(delta.text for delta in deltas).strip() == "42"


async def test_nothing_but_thoughts_is_asked_again(wire: HttpClient) -> None:
    replies = in_order(Reply(text="<think>hm"), Reply(text="<think>hm</think>42"))
    async with serve_mock(replies) as server:
        _, answer = await ask(resilient(open_openai(server, wire)), question("go"))
    assert (answer.text, len(server.seen)) == ("42", 2)


async def test_a_cut_answer_is_gone_on_with(opened: Open, wire: HttpClient) -> None:
    replies = in_order(
        Reply(text="```python a.py\na = 1\nb = ", stop="length"),
        Reply(text="b = 2\nc = 'three or four'\nd =", stop="length"),
        Reply(text="```python\nc = 'three or four'\nd = 4\n```\nDone."),
    )
    async with serve_mock(replies) as server:
        _, answer = await ask(resilient(opened(server, wire, None)), question("go"))
    assert answer.text == "```python a.py\na = 1\nb = 2\nc = 'three or four'\nd = 4\n```\nDone."
    assert (answer.stop, answer.usage.completion, len(server.seen)) == ("finished", 21, 3)
    assert b"b = 2" not in server.seen[1].body
    assert b"exactly where it stopped" in server.seen[1].body


async def test_an_answer_that_was_all_thought_begins_anew(wire: HttpClient) -> None:
    replies = in_order(Reply(text="", reasoning="so long", stop="length"), Reply(text="42"))
    async with serve_mock(replies) as server:
        _, answer = await ask(resilient(open_openai(server, wire)), question("go"))
    assert (answer.text, answer.reasoning) == ("42", "so long")
    assert b"Think less" in server.seen[1].body


async def test_an_answer_without_end_is_handed_on_as_cut(wire: HttpClient) -> None:
    async with serve_mock(lambda seen: Reply(text=f"line {seen.number}\n", stop="length")) as server:
        _, answer = await ask(Continuation(open_openai(server, wire)), question("go"))
    assert (answer.stop, len(server.seen)) == ("length", MAX_PARTS)
    assert answer.text.splitlines() == [f"line {number}" for number in range(1, MAX_PARTS + 1)]


@pytest.mark.parametrize("bound", [{"max_tokens": 9}, {"schema": {"type": "object"}}])
async def test_a_bound_of_the_persons_is_kept(wire: HttpClient, bound: dict[str, object]) -> None:
    async with serve_mock(in_order(Reply(text="{", stop="length"))) as server:
        request = msgspec.convert({**msgspec.to_builtins(question("go")), **bound}, Request)
        _, answer = await ask(Continuation(open_openai(server, wire)), request)
    assert (answer.stop, len(server.seen)) == ("length", 1)


@pytest.mark.parametrize(
    ("pieces", "texts", "thoughts"),
    [
        (["42", " <think>no</think>"], ["42", " <think>no</think>"], ["", ""]),
        (["<thi", "nk>a", "b</thi", "nk>\n4", "2"], ["", "", "", "4", "2"], ["", "a", "b", "", ""]),
        (["<think>a</think>", "</think>b"], ["", "</think>b"], ["a", ""]),
        (["<th", "is"], ["", "<this"], ["", ""]),
        (["<thinking>a</think>b</thinking>c"], ["c"], ["a</think>b"]),
    ],
)
def test_a_watcher_sees_each_piece_as_soon_as_it_is_known_what_it_is(
    pieces: list[str], texts: list[str], thoughts: list[str]
) -> None:
    stream = ThoughtStream()
    seen = [stream.read(Delta(text=piece)) for piece in pieces]
    assert ([one.text for one in seen], [one.reasoning for one in seen]) == (texts, thoughts)
    apart = ThoughtStream().read(Delta(text="<think>b", reasoning="a"))
    assert apart == Delta(reasoning="ab")
    assert ThoughtStream().read(Delta(reasoning="a")) == Delta(reasoning="a")


FENCED = "```python a.py\nx = 1\n"


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("x = ", "1", "x = 1"),
        (FENCED, "```python a.py\ny = 2\n```", FENCED + "y = 2\n```"),
        (FENCED, "```\nDone.", FENCED + "```\nDone."),
        (FENCED, "  ```  \nDone.", FENCED + "  ```  \nDone."),
        (FENCED + "```\n", "```python b.py\n", FENCED + "```\n```python b.py\n"),
        ("a\nb = a + 1000\n", "b = a + 1000\nc", "a\nb = a + 1000\nc"),
        ("1\nreturn None\n", "1\nreturn None\nx", "1\nreturn None\nx"),
        ("return None\n", "return None\nx", "return None\nreturn None\nx"),
    ],
)
def test_a_continuation_is_joined_without_what_it_repeats(before: str, after: str, joined: str) -> None:
    assert join_continuation(before, after) == joined


@pytest.mark.parametrize(("repeated", "known"), [(60, True), (61, False)])
def test_sixty_lines_may_be_repeated(repeated: int, known: bool) -> None:
    lines = [f"line {number} of many" for number in range(80)]
    before, again = "\n".join(lines) + "\n", "\n".join(lines[-repeated:]) + "\nnew"
    assert (join_continuation(before, again) == before + "new") is known


@given(
    st.lists(st.sampled_from(["a = 'some text'", "b = 1", "", "```", "c"]), unique=True), st.integers(0, 4)
)
def test_parts_join_to_what_was_meant(lines: list[str], at: int) -> None:
    whole = "\n".join(lines)
    before, after = "\n".join(lines[:at]), "\n".join(lines[at:])
    if lines[:at] and lines[at:] and lines[at - 1] != lines[at]:
        assert join_continuation(before + "\n", after) == whole


@pytest.mark.parametrize(("line", "joined"), [("x" * 11, 2), ("x" * 12, 1), ("x" * 13, 1)])
def test_a_line_that_comes_again_is_a_repetition_from_twelve_characters_on(line: str, joined: int) -> None:
    assert join_continuation(f"a = 1\n{line}\n", f"{line}\nb = 2\n").count(line) == joined


async def test_a_call_that_was_cut_is_asked_for_in_smaller_steps(opened: Open, wire: HttpClient) -> None:
    cut = replace(CALL, arguments='{"path": "a.py", "content": "x')
    replies = in_order(Reply(calls=(cut,), stop="length"), Reply(calls=(CALL,)))
    async with serve_mock(replies) as server:
        model = ArgumentRepair(opened(server, wire, None))
        _, answer = await ask(model, replace(question("go"), tools=(WRITE,)))
    assert answer.calls == (CALL,)
    assert b"Send less in one call" in server.seen[1].body


async def test_the_longest_answer_is_the_models_own(wire: HttpClient) -> None:
    asked: list[object] = []

    def script(seen: ReceivedRequest) -> Reply:
        asked.append(seen.fields["max_tokens"])
        return Reply(text="42")

    async with serve_mock(script) as server:
        server.max_tokens = 32_000
        model = open_anthropic(server, wire)
        for _ in range(2):
            assert (await ask(model, question("go")))[1].text == "42"
        assert [seen.fields["max_tokens"] for seen in server.seen] == [64_000, 32_000, 32_000]
        await ask(model, replace(question("go"), max_tokens=100))
        server.max_tokens = 50
        with pytest.raises(RequestRejected):
            await ask(model, question("go"))
    assert asked == [32_000, 32_000, 100]


@pytest.mark.parametrize("kind", ["openai", "azure", "anthropic"])
async def test_reasoning_goes_back_with_the_calls_that_it_led_to(kind: str, wire: HttpClient) -> None:
    async with serve_mock(in_order(Reply(calls=(CALL,), reasoning="six times seven"))) as server:
        model = WIRES[kind](server, wire, None)
        _, answer = await ask(model, question("go"))
        messages = (*question("go").messages, *called(answer))
        await ask(model, replace(question("go"), messages=messages))
        other = WIRES["openai" if kind == "anthropic" else "anthropic"](server, wire, None)
        await ask(other, replace(question("go"), messages=messages))
    told = server.seen[1].messages[-2]
    if kind == "anthropic":
        thought = {"type": "thinking", "thinking": "six times seven", "signature": "signed"}
        assert told["content"][0] == thought  # pyright: ignore[reportIndexIssue]
    else:
        assert told["reasoning_content"] == "six times seven"
    assert b"six times seven" not in server.seen[2].body  # another wire would refuse it


def called(answer: Answer) -> list[Message]:
    said = Message(role="assistant", text=answer.text, calls=answer.calls, replay=answer.replay)
    return [said, *(Message(role="tool", text="written", call=call.id) for call in answer.calls)]


async def test_reasoning_is_not_told_to_a_server_that_refuses_it(wire: HttpClient) -> None:
    async with serve_mock(in_order(Reply(calls=(CALL,), reasoning="six"))) as server:
        server.refused_parameter = "reasoning_content"
        model = open_openai(server, wire)
        _, answer = await ask(model, question("go"))
        messages = (*question("go").messages, *called(answer))
        await ask(model, replace(question("go"), messages=messages))
    assert [b"reasoning_content" in seen.body for seen in server.seen] == [False, True, False]


async def test_a_thread_has_one_key_in_the_services_cache(wire: HttpClient) -> None:
    async with serve_mock() as server:
        model = open_openai(server, wire)
        for text in ("one", "two"):
            await ask(model, replace(question(text), thread="chat.coder"))
        server.refused_parameter = "prompt_cache_key"
        await ask(model, replace(question("three"), thread="chat.coder"))
    keys = [seen.fields.get("prompt_cache_key") for seen in server.seen]
    assert keys == ["chat.coder"] * 3 + [None]


async def test_the_marks_of_the_cache_stand_where_two_requests_end(wire: HttpClient) -> None:
    many = tuple(replace(CALL, id=f"c{number}") for number in range(30))
    said = Message(role="assistant", text="", calls=many)
    results = [Message(role="tool", text=f"result {call.id}", call=call.id) for call in many]
    async with serve_mock() as server:
        model = open_anthropic(server, wire)
        for messages in (question("go").messages, (*question("go").messages, said, *results)):
            await ask(model, replace(question("go"), messages=messages, tools=(WRITE,)))
    first, second = (msgspec.json.decode(msgspec.json.encode(seen.messages)) for seen in server.seen)
    assert first == second[:1]
    assert [block for message in second for block in message["content"] if "cache_control" in block] == [
        first[0]["content"][-1],
        second[-1]["content"][-1],
    ]
    assert len(second[-1]["content"]) == len(many)
