"""What every wire to a model must do, shown against a server over real sockets."""

import base64
import time
from collections.abc import AsyncIterator

import msgspec
import pytest
from models.asking import CONTRACT, KEY, WRITE, Open, ask, question, said_by

from septet.domain.messages import Message, Request, ToolCall, Usage
from septet.models.faults import AccessDenied, ContentFiltered, InvalidAnswer
from septet.models.http import HttpClient
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio

TEXT = "Zwölf Boxkämpfer\njagen \U0001f98a quer über den Deich.\n" * 3


@pytest.fixture
async def wire() -> AsyncIterator[HttpClient]:
    async with HttpClient() as wire:
        yield wire


@pytest.fixture(params=list(CONTRACT))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(kind: str) -> Open:
    return CONTRACT[kind]


@pytest.mark.parametrize("piece", [1, 7, 1000])
async def test_the_pieces_add_up_to_the_answer(opened: Open, wire: HttpClient, piece: int) -> None:
    before = time.monotonic()
    async with serve_mock(in_order(Reply(text=TEXT, piece=piece))) as server:
        deltas, answer = await ask(opened(server, wire, None), question("go"))
    assert 0 < answer.seconds <= time.monotonic() - before
    assert answer.text == TEXT
    assert "".join(delta.text for delta in deltas) == TEXT
    assert answer.stop == "finished"


async def test_usage_says_how_much_came_from_the_cache(opened: Open, kind: str, wire: HttpClient) -> None:
    """Ollama has a cache and says nothing of it."""
    usage = Usage(prompt=120, cached=0 if kind == "ollama" else 100, completion=9)
    async with serve_mock(in_order(Reply(text="x", usage=usage))) as server:
        _, answer = await ask(opened(server, wire, None), question("go"))
    assert answer.usage == usage
    assert answer.model == "mock"


async def test_parallel_calls_keep_their_order_ids_and_exact_arguments(
    opened: Open, kind: str, wire: HttpClient
) -> None:
    calls = tuple(
        ToolCall(id=f"call_{n}", name="write", arguments=f'{{"path":"{n}.py","content":"ä"}}')
        for n in range(1, 4)
    )
    async with serve_mock(in_order(said_by(kind, Reply(text="two files", calls=calls, piece=3)))) as server:
        request = msgspec.structs.replace(question("go"), tools=(WRITE,))
        _, answer = await ask(opened(server, wire, None), request)
    assert answer.calls == calls
    assert answer.stop == "calls"
    assert answer.text == "two files"
    assert b"Write a file." in server.seen[0].body
    assert ("tools" in server.seen[0].fields) == (kind != "text-only")


async def test_reasoning_is_kept_apart(opened: Open, wire: HttpClient) -> None:
    async with serve_mock(in_order(Reply(text="42", reasoning="six times seven"))) as server:
        deltas, answer = await ask(opened(server, wire, None), question("go"))
    assert (answer.text, answer.reasoning) == ("42", "six times seven")
    assert "".join(delta.reasoning for delta in deltas) == "six times seven"


async def test_an_answer_that_hit_the_length_says_so(opened: Open, wire: HttpClient) -> None:
    async with serve_mock(in_order(Reply(text="cut he", stop="length"))) as server:
        _, answer = await ask(opened(server, wire, None), question("go"))
    assert answer.stop == "length"


async def test_a_schema_is_sent_and_its_reply_is_the_text(opened: Open, wire: HttpClient) -> None:
    schema: dict[str, object] = {"type": "object", "properties": {"verdict": {"type": "string"}}}
    said = '{"verdict": "accept"}'
    forced = Reply(calls=(ToolCall(id="1", name="reply", arguments=said),))
    async with serve_mock(
        lambda seen: forced if seen.path.endswith("/messages") else Reply(text=said)
    ) as server:
        request = msgspec.structs.replace(question("go"), schema=schema)
        _, answer = await ask(opened(server, wire, None), request)
    assert msgspec.json.decode(answer.text) == {"verdict": "accept"}
    assert answer.stop == "finished"
    assert answer.calls == ()
    assert b"verdict" in server.seen[0].body


async def test_images_travel_inside_the_message(opened: Open, kind: str, wire: HttpClient) -> None:
    picture = b"\x89PNG\r\n\x1a\n and so on"
    asked: list[str] = []

    async def load(address: str) -> bytes:
        asked.append(address)
        return picture

    message = Message(role="user", text="look", images=("0" * 64,))
    async with serve_mock(in_order(Reply(text="seen"))) as server:
        await ask(opened(server, wire, load), Request(role="reviewer", step=1, messages=(message,)))
    if kind == "text-only":
        assert b"(1 picture that you cannot see)" in server.seen[0].body
        return
    assert asked == ["0" * 64]
    assert base64.b64encode(picture) in server.seen[0].body
    assert b"image/png" in server.seen[0].body


async def test_results_of_tools_go_back_under_the_id_of_their_call(
    opened: Open, kind: str, wire: HttpClient
) -> None:
    calls = tuple(ToolCall(id=f"call_{n}", name="write", arguments='{"path": "a"}') for n in (1, 2))
    messages = (
        *question("go").messages,
        Message(role="assistant", text="", calls=calls),
        Message(role="tool", text="written", call="call_1"),
        Message(role="tool", text="refused", call="call_2"),
    )
    async with serve_mock() as server:
        request = Request(role="coder", step=2, messages=messages, tools=(WRITE,))
        await ask(opened(server, wire, None), request)
    seen = server.seen[0].messages
    roles = [message["role"] for message in seen]
    if kind == "text-only":
        words = [str(message["content"]) for message in seen[2:]]
        assert roles == ["system", "user", "assistant", "user", "user"]
        assert words[0].count("```tool") == 2
        assert words[1:] == ["Result of call_1:\nwritten", "Result of call_2:\nrefused"]
        return
    body = server.seen[0].body
    assert roles in (["system", "user", "assistant", "tool", "tool"], ["user", "assistant", "user"])
    assert body.index(b"call_1") < body.index(b"call_2") < body.rindex(b"call_1") < body.rindex(b"call_2")


async def test_connections_are_used_again(opened: Open, wire: HttpClient) -> None:
    async with serve_mock() as server:
        model = opened(server, wire, None)
        for step in range(1, 6):
            await ask(model, question("go", step=step))
    assert len(server.seen) == 5
    assert server.connections == 1


async def test_the_key_is_sent_and_a_wrong_one_is_denied(opened: Open, wire: HttpClient) -> None:
    async with serve_mock(key=KEY) as server:
        await ask(opened(server, wire, None), question("go"))
    async with serve_mock(key="another") as server:
        with pytest.raises(AccessDenied, match="Incorrect API key"):
            await ask(opened(server, wire, None), question("go"))


async def test_a_filtered_answer_is_a_fault(opened: Open, wire: HttpClient) -> None:
    async with serve_mock(faults={1: "filtered"}) as server:
        with pytest.raises(ContentFiltered):
            await ask(opened(server, wire, None), question("go"))


@pytest.mark.parametrize(
    "fault", ["no finish reason", "null content", "no choices", "malformed", "truncated", "html"]
)
async def test_what_is_no_whole_answer_is_never_taken_for_one(
    opened: Open, wire: HttpClient, fault: str
) -> None:
    async with serve_mock(in_order(Reply(text=TEXT)), faults={1: fault}) as server:  # pyright: ignore[reportArgumentType]  # a parameter
        with pytest.raises(InvalidAnswer):
            await ask(opened(server, wire, None), question("go"))


async def test_stopping_early_frees_the_connection(opened: Open, wire: HttpClient) -> None:
    async with serve_mock(in_order(Reply(text=TEXT * 50, piece=1))) as server:
        model = opened(server, wire, None)
        stream = model.answer(question("go"))
        async for _ in stream:
            break
        await stream.aclose()  # pyright: ignore  # every adapter here is an async generator
        _, answer = await ask(model, question("go"))
    assert answer.text == TEXT * 50
