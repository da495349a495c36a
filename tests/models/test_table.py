"""The table of providers: what each name stands for, what is said about unknown ones, and providers from outside."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.asking import ask, question

from septet.domain.teams import RoleSpec
from septet.errors import BadConfig, NoModel, SeptetError
from septet.models.providers.openai_compatible import is_large, ollama_address
from septet.models.providers.provider import ModelEndpoint, Provider, ProviderSettings
from septet.models.table import PROVIDERS, resolve
from septet.settings.home import Home
from septet.wiring.models import Models, adapt_to_model

KEYS = {
    "OPENAI_API_KEY": "sk-o",
    "ANTHROPIC_API_KEY": "sk-a",
    "AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/",
    "AZURE_OPENAI_API_KEY": "sk-z",
    "OPENAI_API_VERSION": "2025-01-01",
}


def around(**variables: str) -> ProviderSettings:
    return ProviderSettings(environment=variables)


CASES: list[tuple[str, dict[str, str], ModelEndpoint]] = [
    ("openai/gpt", KEYS, ModelEndpoint(url="https://api.openai.com/v1", model="gpt", key="sk-o")),
    (
        "openai/gpt",
        {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1/"},
        ModelEndpoint(url="http://127.0.0.1:9/v1", model="gpt"),
    ),
    (
        "anthropic/claude",
        KEYS,
        ModelEndpoint(url="https://api.anthropic.com", model="claude", key="sk-a"),
    ),
    (
        "azure/mine",
        KEYS,
        ModelEndpoint(url="https://me.openai.azure.com", model="mine", key="sk-z", version="2025-01-01"),
    ),
    (
        "azure/mine",
        {"AZURE_OPENAI_ENDPOINT": "https://x", "AZURE_OPENAI_AD_TOKEN": "t"},
        ModelEndpoint(url="https://x", model="mine", token="t"),
    ),
    ("ollama/qwen2.5:7b", {}, ModelEndpoint(url="http://127.0.0.1:11434/v1", model="qwen2.5:7b")),
    ("url:http://h:1/v1#a/b", {}, ModelEndpoint(url="http://h:1/v1", model="a/b")),
    ("http://h:1/v1#a/b", {}, ModelEndpoint(url="http://h:1/v1", model="a/b")),
    ("local/qwen2.5-coder-1.5b", {}, ModelEndpoint(model="qwen2.5-coder-1.5b")),
]


@pytest.mark.parametrize(("name", "variables", "expected"), CASES)
def test_a_name_stands_for_its_endpoint(
    name: str, variables: dict[str, str], expected: ModelEndpoint
) -> None:
    assert resolve(name, around(**variables)) == expected


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai/x", "OPENAI_API_KEY"),
        ("anthropic/x", "ANTHROPIC_API_KEY"),
        ("azure/x", "AZURE_OPENAI_ENDPOINT"),
    ],
)
def test_what_is_missing_is_named(name: str, variable: str) -> None:
    with pytest.raises(NoModel, match=variable) as failed:
        resolve(name, around())
    assert failed.value.exit_code == 5


@pytest.mark.parametrize("name", ["gpt-5", "opnai/x", "openai/", "url:ftp://x#y", "url:http://x", "", "/"])
def test_what_is_no_name_gets_one_clear_line(name: str) -> None:
    with pytest.raises(BadConfig):
        resolve(name, around(**KEYS))


def test_a_misspelt_provider_is_recognised() -> None:
    with pytest.raises(BadConfig, match="did you mean 'openai/"):
        resolve("opnai/gpt", around())


LONG = "x" * 200
PATTERNS = [one.name_pattern for one in PROVIDERS]


@pytest.mark.parametrize(
    ("name", "cause", "remedy"),
    [
        ("gpt-5", "'gpt-5' is not a model name", "did you mean 'openai/gpt-5'?"),
        ("Claude-x/y", "'Claude-x/y' is not a model name", "did you mean 'anthropic/Claude-x/y'?"),
        (f"qwen{LONG}", f"'qwen{LONG[:76]}' is not a model name", f"did you mean 'ollama/qwen{LONG[:76]}'?"),
        ("antropic/x", "'antropic/x' is not a model name", "did you mean 'anthropic/…'?"),
        (f"opnai/{LONG}", f"'opnai/{LONG[:74]}' is not a model name", "did you mean 'openai/…'?"),
        (LONG, f"'{LONG[:80]}' is not a model name", f"use {', '.join(PATTERNS[:-1])} or {PATTERNS[-1]}"),
        ("openai/", "'openai/' is not a model name", f"use {', '.join(PATTERNS[:-1])} or {PATTERNS[-1]}"),
    ],
)
def test_what_is_no_name_gets_the_nearest_one_or_all_forms(name: str, cause: str, remedy: str) -> None:
    with pytest.raises(BadConfig) as failed:
        resolve(name, around(**KEYS))
    assert (failed.value.cause, failed.value.remedy) == (cause, remedy)


@pytest.mark.parametrize(
    ("name", "large"),
    [
        ("qwen2.5-coder:7b", False),
        ("qwen3:19.9b", False),
        ("gpt-oss:20b", True),
        ("mixtral:8x7b", False),
        ("llama3.3-70b-instruct", True),
        ("kimi-k2:1t-cloud", True),
        ("mistral", False),
        ("a:7b-32b", True),
    ],
)
def test_a_model_of_ollama_gets_tools_if_its_name_tells_that_it_is_large(name: str, large: bool) -> None:
    assert is_large(name) is large


def test_a_kept_key_is_used_and_the_vendors_variable_wins() -> None:
    kept = ProviderSettings(environment={}, keys={"openai": "kept"})
    both = ProviderSettings(environment={"OPENAI_API_KEY": "given"}, keys={"openai": "kept"})
    assert resolve("openai/x", kept).key == "kept"
    assert resolve("openai/x", both).key == "given"


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("box:1", "http://box:1"),
        ("https://box", "https://box:11434"),
        ("[::1]:5", "http://[::1]:5"),
    ],
)
def test_ollamas_host_in_all_its_forms(host: str, address: str) -> None:
    assert ollama_address(around(OLLAMA_HOST=host)) == address


@given(name=st.text(max_size=40))
def test_any_text_at_all_is_a_model_or_one_of_our_errors(name: str) -> None:
    with suppress(SeptetError):
        assert resolve(name, around(**KEYS)).model


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_every_provider_is_in_the_docs_with_its_key(provider: Provider) -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    assert f"`{provider.prefix}" in page
    assert not provider.key_variable or f"`{provider.key_variable}`" in page


TOY = """
from septet.domain.messages import Answer
from septet.models.providers.provider import ModelEndpoint, Provider


class Parrot:
    def __init__(self, word, key):
        self.said = f"{word} by {key}"

    async def answer(self, request):
        yield Answer(text=self.said)


parrot = Provider(
    name_pattern="parrot/WORD",
    about="says one word",
    key_variable="PARROT_KEY",
    has_tools=True,
    endpoint=lambda word, settings: ModelEndpoint(model=word, key=parrot.key(settings)),
    open=lambda endpoint, connections: Parrot(endpoint.model, endpoint.key),
)
"""


@pytest.mark.anyio
async def test_an_installed_package_brings_a_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_parrot.py").write_text(TOY)
    (tmp_path / "toy_parrot-1.dist-info").mkdir()
    (tmp_path / "toy_parrot-1.dist-info" / "METADATA").write_text("Name: toy-parrot\nVersion: 1\n")
    (tmp_path / "toy_parrot-1.dist-info" / "entry_points.txt").write_text(
        "[septet.providers]\nparrot = toy_parrot:parrot\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]  # pytest leaves its type open
    home = Home(data=tmp_path, config=tmp_path / "config", cache=tmp_path / "cache")
    async with Models(home, {"PARROT_KEY": "secret"}) as models:
        _, answer = await ask(models.open(["parrot/hello"]), question("go"))
        models.store_key("parrot", "stored")
        keys = (await models.overview()).keys
    assert answer.text == "hello by secret"
    assert keys == ("parrot",)
    coder = RoleSpec(name="coder", role="coder", model=("parrot/hello",))
    assert adapt_to_model(coder).form == "tools"
