"""The distributed group chat's configuration: accepted as it stands, mistakes named with their line."""

from pathlib import Path

import msgspec
import pytest

from septet.errors import BadConfig
from septet.settings.group_chats import (
    ClientForm,
    client_environment,
    model_names,
    parse_group_chat,
    read_group_chat,
    without_models,
)
from septet.settings.team_files import load_team

AS_IT_STANDS = Path(__file__).parent.parent / "scripts" / "group_chat.yaml"


def test_the_file_is_accepted_as_it_stands() -> None:
    found = read_group_chat(AS_IT_STANDS)

    assert (found.hostname, found.port) == ("localhost", 50060)
    assert found.team.budget.rounds == 3
    assert [member.name for member in found.team.members] == ["writer", "editor", "proxy"]
    assert found.team.members[0].instructions == "You write one sentence each time"
    assert found.team.members[0].model == ()
    assert found.environment == {"OPENAI_API_VERSION": "2024-08-01-preview"}


def test_it_is_a_team_wherever_a_team_is_named() -> None:
    assert load_team(str(AS_IT_STANDS)) == read_group_chat(AS_IT_STANDS).team


def test_azure_is_chosen_by_its_deployment_and_its_address_goes_into_the_environment() -> None:
    client = "{model: gpt-4o, azure_endpoint: 'https://e', azure_deployment: dep, api_version: v, api_key: k}"
    found = parse_group_chat(f"client_config: {client}", "config.yaml")

    assert found.team.members[0].model == ("azure/dep",)
    assert found.environment == {
        "AZURE_OPENAI_ENDPOINT": "https://e",
        "OPENAI_API_VERSION": "v",
        "AZURE_OPENAI_API_KEY": "k",
    }


def test_without_azure_it_is_the_openai_wire() -> None:
    found = parse_group_chat("client_config: {model: m, base_url: 'http://x/v1', api_key: null}", "c.yaml")

    assert found.team.members[1].model == ("openai/m",)
    assert found.environment == {"OPENAI_BASE_URL": "http://x/v1"}


def test_what_the_client_may_use_is_the_members() -> None:
    client = "{model: m, api_key: k, temperature: 0.2, max_tokens: 300, timeout: 20}"
    writer = parse_group_chat(f"client_config: {client}", "c.yaml").team.members[0]

    assert (writer.temperature, writer.max_tokens, writer.timeout) == (0.2, 300, 20.0)


PROVIDER = """
  azure_ad_token_provider:
    provider: autogen_ext.auth.azure.AzureTokenProvider
    config: {provider_kind: DefaultAzureCredential, scopes: ['https://cognitiveservices.azure.com/.default']}
"""


@pytest.mark.parametrize(
    ("more", "environment"),
    [
        (PROVIDER, {}),
        ("\n  azure_ad_token_provider: DefaultAzureCredential\n", {}),
        ("\n  azure_ad_token: secret\n", {"AZURE_OPENAI_AD_TOKEN": "secret"}),
    ],
)
def test_a_token_or_its_provider_lets_in_instead_of_a_key(more: str, environment: dict[str, str]) -> None:
    address = "https://mine.openai.azure.com"
    text = f"client_config:\n  azure_endpoint: {address}\n  azure_deployment: dep{more}"
    found = parse_group_chat(text, "c.yaml").environment

    assert found == {"AZURE_OPENAI_ENDPOINT": address, **environment}


ELSEWHERE = "{model: m, base_url: 'https://elsewhere.example/v1'"


@pytest.mark.parametrize(
    ("client", "around", "added"),
    [
        ("{model: m, api_key: k}", {}, {"OPENAI_API_KEY": "k"}),
        ("{model: m, api_key: k}", {"OPENAI_API_KEY": "mine"}, {}),
        (
            f"{ELSEWHERE}, api_key: k}}",
            {"OPENAI_API_KEY": "mine"},
            {"OPENAI_BASE_URL": "https://elsewhere.example/v1", "OPENAI_API_KEY": "k"},
        ),
        (f"{ELSEWHERE}}}", {"OPENAI_BASE_URL": "http://own"}, {}),
        ("{model: m, base_url: 'http://127.0.0.1:1/v1'}", {}, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}),
    ],
)
def test_an_address_of_the_file_gets_the_files_key(
    client: str, around: dict[str, str], added: dict[str, str]
) -> None:
    assert client_environment(parse_group_chat(f"client_config: {client}", "c.yaml"), around) == added


def test_a_key_of_the_person_is_not_sent_to_an_address_of_the_file() -> None:
    found = parse_group_chat(f"client_config: {ELSEWHERE}}}", "c.yaml")
    with pytest.raises(BadConfig, match=r"elsewhere\.example/v1 and no api_key"):
        client_environment(found, {"OPENAI_API_KEY": "mine"})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "host: {hostnam: x}\nclient_config: {}",
            "c.yaml:1: unknown key 'hostnam': did you mean 'hostname'?",
        ),
        ("host: {}\n\nwriter_agent:\n  sytem_message: x", "c.yaml:4: unknown key 'sytem_message'"),
        ("client_config: {}\nwriter: {}", "c.yaml:2: unknown key 'writer'"),
        ("group_chat_manager:\n  max_rounds: many", "c.yaml:2: expected a whole number, got text"),
        ("group_chat_manager: {max_rounds: 0}", "max_rounds must be 1 or more"),
        ("client_config: {}\nhost: {port: 70000}", "70000 is not a valid port"),
        ("client_config: {}\nhost: {hostname: ' '}", "hostname is empty"),
        ("client_config: {timeout: 0}", "timeout must be greater than 0"),
        ("client_config: {max_tokens: 0}", "max_tokens must be greater than 0"),
        ("client_config: {azure_ad_token_provider: Mine}", "only DefaultAzureCredential"),
        (
            "client_config: {api_key: k, azure_ad_token_provider: DefaultAzureCredential}",
            "api_key and azure_ad_token_provider cannot be combined",
        ),
    ],
)
def test_mistakes_are_named_with_path_and_line(text: str, complaint: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_group_chat(text, "c.yaml")
    assert complaint in str(caught.value)


def test_on_many_machines_the_chat_names_no_models() -> None:
    team = parse_group_chat("client_config: {model: m, api_key: k}", "c.yaml").team
    assert [member.model for member in team.members] == [("openai/m",), ("openai/m",), ()]
    assert {member.model for member in without_models(team).members} == {()}


def test_one_round_is_enough() -> None:
    team = parse_group_chat("group_chat_manager: {max_rounds: 1}", "c.yaml").team
    assert team.budget.rounds == 1


@pytest.mark.parametrize(
    ("client", "models"),
    [
        ({"model": "m"}, ("openai/m",)),
        ({"model": "m", "azure_endpoint": "https://x"}, ("azure/m",)),
        ({"model": "m", "azure_deployment": "d"}, ("azure/d",)),
        ({}, ()),
        ({"model": "{your model}"}, ()),
    ],
)
def test_an_address_or_a_deployment_of_azure_chooses_its_wire(
    client: dict[str, str], models: tuple[str, ...]
) -> None:
    form = msgspec.convert(client, ClientForm)
    assert model_names(form) == models
