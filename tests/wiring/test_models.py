"""Models by name, end to end against the mock server; keys appear in no error."""

from pathlib import Path

import pytest
from models.asking import ask, question
from msgspec.structs import replace

from septet.domain.teams import RoleSpec
from septet.errors import NoModel, SeptetError
from septet.models.wrappers.retry import RetryPolicy
from septet.settings.home import Home
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock
from septet.wiring.models import Models, absolute_model_name, adapt_to_model

pytestmark = pytest.mark.anyio

SECRET = "sk-very-secret-4711"
ONCE = RetryPolicy(attempts=1)


def home(folder: Path) -> Home:
    return Home(data=folder, config=folder / "config", cache=folder / "cache")


def variables(url: str) -> dict[str, str]:
    root = url.removesuffix("/v1")
    return {
        "OPENAI_API_KEY": SECRET,
        "OPENAI_BASE_URL": url,
        "ANTHROPIC_API_KEY": SECRET,
        "ANTHROPIC_BASE_URL": root,
        "AZURE_OPENAI_ENDPOINT": root,
        "AZURE_OPENAI_API_KEY": SECRET,
        "OLLAMA_HOST": root.removeprefix("http://"),
        "SEPTET_URL_KEY": SECRET,
    }


@pytest.mark.parametrize("name", ["openai/m", "anthropic/m", "azure/m", "ollama/m", "url:{}#m"])
async def test_every_kind_of_name_reaches_its_server(name: str, tmp_path: Path) -> None:
    async with (
        serve_mock(in_order(Reply(text="hello"))) as server,
        Models(home(tmp_path), variables(server.url), retry=ONCE) as models,
    ):
        _, answer = await ask(models.open([name.format(server.url)]), question("go"))
    assert answer.text == "hello"
    assert len(server.seen) == 1


@pytest.mark.parametrize("name", ["openai/m", "anthropic/m", "azure/m", "url:{}#m"])
async def test_a_refused_key_appears_in_no_error(name: str, tmp_path: Path) -> None:
    async with (
        serve_mock(key="another") as server,
        Models(home(tmp_path), variables(server.url), retry=ONCE) as models,
    ):
        with pytest.raises(SeptetError) as failed:
            await ask(models.open([name.format(server.url)]), question("go"))
    error: BaseException | None = failed.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__


async def test_a_kept_key_opens_a_model(tmp_path: Path) -> None:
    async with (
        serve_mock(key=SECRET) as server,
        Models(home(tmp_path), {"OPENAI_BASE_URL": server.url}, retry=ONCE) as models,
    ):
        models.keys.set("openai", SECRET)
        await ask(models.open(["openai/m"]), question("go"))
    assert server.seen[0].headers["authorization"] == f"Bearer {SECRET}"


async def test_the_first_name_answers_and_the_next_stands_in(tmp_path: Path) -> None:
    async with (
        serve_mock(faults={1: "server error"}) as strong,
        serve_mock(in_order(Reply(text="stand-in"))) as cheap,
        Models(home(tmp_path), {}, retry=ONCE) as models,
    ):
        _, answer = await ask(models.open([f"url:{strong.url}#a", f"url:{cheap.url}#b"]), question("go"))
    assert answer.text == "stand-in"
    assert answer.cost == 0.0


async def test_nothing_named_and_nothing_fetched_is_one_line_each(tmp_path: Path) -> None:
    async with Models(home(tmp_path), {}) as models:
        with pytest.raises(NoModel, match="no model was chosen"):
            models.open([""])
        with pytest.raises(NoModel, match=r"septet models get|septet\[local\]"):
            models.open(["local/qwen2.5-coder-1.5b"])


async def test_the_overview_names_embedded_models_and_servers(tmp_path: Path) -> None:
    async with serve_mock() as server:
        host = server.url.removesuffix("/v1").removeprefix("http://")
        async with Models(home(tmp_path), {"OLLAMA_HOST": host}) as models:
            lines = (await models.overview()).lines()
            choice = await models.choose()
    assert "ollama/mock  Ollama" in lines
    assert any(line.startswith("local/qwen2.5-coder-1.5b") and "Apache-2.0" in line for line in lines)
    assert choice.name == "ollama/mock"


def test_names_are_settled_before_they_go_into_the_log() -> None:
    assert absolute_model_name("local") == "local/qwen2.5-coder-1.5b"
    assert absolute_model_name("scripted:demo/clock") == "scripted:demo/clock"
    assert absolute_model_name("replay:x.jsonl") == f"replay:{Path('x.jsonl').absolute()}"


def test_a_member_works_as_its_model_does_best_unless_the_team_says_how() -> None:
    small = adapt_to_model(RoleSpec(name="coder", role="coder", model=("local/x",)))
    assert (small.form, small.candidates, small.temperature) == ("small", 16, 0.0)
    large = RoleSpec(name="coder", role="coder", model=("openai/x",))
    assert adapt_to_model(large) == replace(large, form="tools")
    assert adapt_to_model(replace(large, form="text")).form == "text"
    assert adapt_to_model(replace(large, model=("ollama/x",))).form == ""
