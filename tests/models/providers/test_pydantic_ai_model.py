"""Names that pydantic-ai knows: opened by the wiring, and what is said where that cannot be."""

import sys
from pathlib import Path

import pytest
from models.asking import WRITE, ask, question
from msgspec.structs import replace
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelTimeoutError,
    UserError,
)
from pydantic_ai.messages import (
    BinaryContent,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage

from septet.domain.messages import Answer, Delta, Message, ToolCall, Usage
from septet.errors import BadConfig, NoModel
from septet.models.faults import (
    AccessDenied,
    ConnectionFailed,
    ContentFiltered,
    Fault,
    InvalidAnswer,
    RateLimited,
    RequestRejected,
    ServerError,
    TimedOut,
)
from septet.models.http import HttpClient
from septet.models.providers.pydantic_ai_model import (
    PydanticAIModel,
    fault_of,
    has_finish_reason,
    history,
    library_faults,
    settings,
    to_answer,
    to_delta,
)
from septet.models.wrappers.retry import RetryPolicy
from septet.models.wrappers.wrapper_stack import Candidate, make_resilient
from septet.settings.home import Home
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock
from septet.wiring.models import Models

pytestmark = pytest.mark.anyio

NAME = "pydantic-ai:openai-chat:mock"


def models(folder: Path) -> Models:
    home = Home(data=folder, config=folder / "config", cache=folder / "cache")
    return Models(home, {}, retry=RetryPolicy(attempts=1))


async def test_a_name_with_its_provider_opens_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_mock(in_order(Reply(text="hello")), key="sk-1") as server, models(tmp_path) as opening:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        _, answer = await ask(opening.open([NAME]), question("go"))
    assert answer.text == "hello"
    assert server.seen[0].headers["authorization"] == "Bearer sk-1"


async def test_what_the_library_knows_to_be_missing_is_asked_for_in_words() -> None:
    said = '```tool\n{"name": "write", "arguments": {"path": "a"}}\n```'
    async with serve_mock(in_order(Reply(text=said))) as server, HttpClient() as wire:
        provider = OpenAIProvider(base_url=server.url, api_key="k")
        inner = OpenAIChatModel("mock", provider=provider, profile={"supports_tools": False})
        model = make_resilient([Candidate("m", PydanticAIModel(inner, wire))], RetryPolicy(attempts=1), print)
        _, answer = await ask(model, replace(question("go"), tools=(WRITE,)))
    assert answer.calls == (ToolCall(id="call_1", name="write", arguments='{"path":"a"}'),)
    assert b"Write a file." in server.seen[0].body
    assert "tools" not in server.seen[0].fields


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("pydantic-ai:openai", "PROVIDER:NAME"),
        ("pydantic-ai:nobody:m", "Unknown provider: nobody"),
        ("pydantic-ai:deepseek:deepseek-chat", "DEEPSEEK_API_KEY"),
        ("pydantic-ai:cohere:m", r"install 'pydantic-ai-slim\[cohere\]'"),
    ],
)
async def test_a_name_that_opens_nothing_is_told_in_one_line(
    name: str, match: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    async with models(tmp_path) as opening:
        with pytest.raises(BadConfig, match=match) as failed:
            opening.open([name])
    assert "\n" not in str(failed.value)


async def test_without_the_extra_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "septet.models.providers.pydantic_ai_model")
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.setitem(sys.modules, "pydantic_ai.direct", None)
    async with models(tmp_path) as opening:
        with pytest.raises(NoModel, match=r"install 'septet\[providers\]'"):
            opening.open([NAME])


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (ContentFilterError("no"), ContentFiltered),
        (ModelQuotaExceededError("m", "empty"), AccessDenied),
        (ModelRateLimitError("m", "slow", retry_after=7.0), RateLimited),
        (ModelTimeoutError("m", "late"), TimedOut),
        (ModelConnectionError("m", "cut", phase="read"), InvalidAnswer),
        (ModelConnectionError("m", "gone", phase="connect"), ConnectionFailed),
        (ModelAPIError("m", "what?"), InvalidAnswer),
        (UserError("never"), RequestRejected),
        (ZeroDivisionError("in a provider's library"), ServerError),
    ],
)
def test_every_error_of_the_library_is_a_fault(error: Exception, fault: type[Fault]) -> None:
    with pytest.raises(fault) as raised, library_faults():
        raise error
    if isinstance(raised.value, RateLimited):
        assert raised.value.retry_after == 7.0
    assert isinstance(error, AgentRunError | UserError | ZeroDivisionError)


ASKED = question("hello")


def test_the_settings_are_what_is_asked_for_and_the_library_retries_nothing() -> None:
    assert settings(ASKED, 9.0) == {"timeout": 9.0, "max_retries": 0}
    wishes = replace(ASKED, temperature=0.0, max_tokens=5)
    assert settings(wishes, 9.0) == {"timeout": 9.0, "max_retries": 0, "temperature": 0.0, "max_tokens": 5}


async def test_a_history_is_told_in_the_librarys_types() -> None:
    async def load(address: str) -> bytes:
        return b"\x89PNG\r\n\x1a\n" + address.encode()

    call = ToolCall(id="c1", name="write", arguments="")
    messages = (
        Message(role="system", text="s"),
        Message(role="user", text="look", images=("a",)),
        Message(role="user", text="", images=("b",)),
        Message(role="assistant", text="", calls=(call,)),
        Message(role="tool", text="written", call="c1"),
        Message(role="tool", text="lost", call="c9"),
        Message(role="assistant", text=""),
    )
    parts = [part for message in await history(messages, load) for part in message.parts]
    assert isinstance(parts[0], SystemPromptPart)
    first, second = parts[1], parts[2]
    assert isinstance(first, UserPromptPart)
    assert isinstance(second, UserPromptPart)
    assert [one if isinstance(one, str) else type(one) for one in first.content] == ["look", BinaryContent]
    assert [type(one) for one in second.content] == [BinaryContent]
    called, answered, lost, empty = parts[3:]
    assert isinstance(called, ToolCallPart)
    assert (called.tool_name, called.args, called.tool_call_id) == ("write", "{}", "c1")
    assert isinstance(answered, ToolReturnPart)
    assert (answered.tool_name, answered.content, answered.tool_call_id) == ("write", "written", "c1")
    assert isinstance(lost, ToolReturnPart)
    assert (lost.tool_name, lost.tool_call_id) == ("", "c9")
    assert isinstance(empty, TextPart)
    assert empty.content == ""


def response(*parts: ModelResponsePart, **fields: object) -> ModelResponse:
    usage = RequestUsage(input_tokens=7, cache_read_tokens=3, output_tokens=2)
    known: dict[str, object] = {"finish_reason": "stop", "model_name": "exact", "usage": usage, **fields}
    return ModelResponse(parts=[*parts], **known)  # pyright: ignore[reportArgumentType]  # fields of a response


def test_a_whole_answer_has_its_text_calls_reasoning_and_counts() -> None:
    found = to_answer(
        response(
            ThinkingPart(content="hm"),
            TextPart(content="a"),
            TextPart(content="b"),
            ToolCallPart(tool_name="write", args={"path": "x"}, tool_call_id="c1"),
            ToolCallPart(tool_name="look", args=None, tool_call_id="c2"),
        ),
        1.5,
    )
    assert found == Answer(
        text="ab",
        model="exact",
        calls=(
            ToolCall(id="c1", name="write", arguments='{"path":"x"}'),
            ToolCall(id="c2", name="look", arguments="{}"),
        ),
        reasoning="hm",
        stop="calls",
        usage=Usage(prompt=7, cached=3, completion=2),
        seconds=1.5,
    )
    assert to_answer(response(TextPart(content="a")), 0.0).stop == "finished"
    call = ToolCallPart(tool_name="look", args="{", tool_call_id="c")
    cut = to_answer(response(call, finish_reason="length"), 0.0)
    assert (cut.stop, cut.calls[0].arguments) == ("length", "{")
    assert to_answer(response(finish_reason="length", model_name=None), 0.0).model == ""


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"finish_reason": None}, InvalidAnswer),
        ({"state": "interrupted"}, InvalidAnswer),
        ({"finish_reason": "content_filter"}, ContentFiltered),
    ],
)
def test_what_is_no_whole_answer_is_a_fault(fields: dict[str, object], fault: type[Fault]) -> None:
    with pytest.raises(fault):
        to_answer(response(TextPart(content="a"), **fields), 0.0)
    with pytest.raises(InvalidAnswer, match="the answer was empty"):
        to_answer(response(), 0.0)


def test_a_finish_reason_that_the_library_made_up_does_not_count() -> None:
    sent = response(provider_details={"finish_reason": "stop"})
    assert has_finish_reason(sent)
    assert not has_finish_reason(response())
    assert not has_finish_reason(response(provider_details={}))
    assert has_finish_reason(response(finish_reason="content_filter"))


def test_an_http_error_is_classified_by_its_status_headers_and_body() -> None:
    busy = ModelHTTPError(429, "m", {"error": {"message": "slow down"}}, headers={"retry-after": "7"})
    found = fault_of(busy)
    assert isinstance(found, RateLimited)
    assert (found.retry_after, found.cause) == (7.0, "the server answered 429: slow down")
    plain = fault_of(ModelHTTPError(404, "m", "no such model"))
    assert (type(plain), plain.cause) == (RequestRejected, "the server answered 404: no such model")


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (PartStartEvent(index=0, part=TextPart(content="a")), Delta(text="a")),
        (PartStartEvent(index=0, part=TextPart(content="")), None),
        (PartStartEvent(index=0, part=ThinkingPart(content="a")), Delta(reasoning="a")),
        (PartStartEvent(index=0, part=ThinkingPart(content="")), None),
        (PartDeltaEvent(index=0, delta=TextPartDelta(content_delta="a")), Delta(text="a")),
        (PartDeltaEvent(index=0, delta=TextPartDelta(content_delta="")), None),
        (PartDeltaEvent(index=0, delta=ThinkingPartDelta(content_delta="a")), Delta(reasoning="a")),
        (PartDeltaEvent(index=0, delta=ThinkingPartDelta(signature_delta="s")), None),
    ],
)
def test_an_event_adds_text_or_reasoning_or_nothing(
    event: ModelResponseStreamEvent, delta: Delta | None
) -> None:
    assert to_delta(event) == delta
