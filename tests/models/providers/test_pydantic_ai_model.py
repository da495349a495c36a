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
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelTimeoutError,
    UserError,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from septet.domain.messages import ToolCall
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
from septet.models.providers.pydantic_ai_model import PydanticAIModel, library_faults
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
