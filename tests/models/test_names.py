"""Names of models: what each stands for, and what is said about those that stand for nothing."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.errors import BadConfig, NoModel, SeptetError
from septet.models.names import Endpoint, ProviderSettings, ollama_address, resolve

KEYS = {
    "OPENAI_API_KEY": "sk-o",
    "ANTHROPIC_API_KEY": "sk-a",
    "AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/",
    "AZURE_OPENAI_API_KEY": "sk-z",
    "OPENAI_API_VERSION": "2025-01-01",
}


def around(**variables: str) -> ProviderSettings:
    return ProviderSettings(environment=variables)


CASES: list[tuple[str, dict[str, str], Endpoint]] = [
    ("openai/gpt", KEYS, Endpoint(wire="openai", url="https://api.openai.com/v1", model="gpt", key="sk-o")),
    (
        "openai/gpt",
        {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1/"},
        Endpoint(wire="openai", url="http://127.0.0.1:9/v1", model="gpt"),
    ),
    (
        "anthropic/claude",
        KEYS,
        Endpoint(wire="anthropic", url="https://api.anthropic.com", model="claude", key="sk-a"),
    ),
    (
        "azure/mine",
        KEYS,
        Endpoint(
            wire="azure", url="https://me.openai.azure.com", model="mine", key="sk-z", version="2025-01-01"
        ),
    ),
    (
        "azure/mine",
        {"AZURE_OPENAI_ENDPOINT": "https://x", "AZURE_OPENAI_AD_TOKEN": "t"},
        Endpoint(wire="azure", url="https://x", model="mine", token="t"),
    ),
    ("ollama/qwen2.5:7b", {}, Endpoint(wire="openai", url="http://127.0.0.1:11434/v1", model="qwen2.5:7b")),
    ("url:http://h:1/v1#a/b", {}, Endpoint(wire="openai", url="http://h:1/v1", model="a/b")),
    ("local/qwen2.5-coder-1.5b", {}, Endpoint(wire="local", url="", model="qwen2.5-coder-1.5b")),
]


@pytest.mark.parametrize(("name", "variables", "expected"), CASES)
def test_a_name_stands_for_its_endpoint(name: str, variables: dict[str, str], expected: Endpoint) -> None:
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
        assert resolve(name, around(**KEYS)).wire in ("openai", "azure", "anthropic", "local")
