"""The distributed group chat's configuration: accepted as it stands, mistakes named with their line."""

from pathlib import Path

import pytest

from septet.errors import BadConfig
from septet.settings.group_chats import each_by_its_own, parse_group_chat, read_group_chat
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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "host: {hostnam: x}\nclient_config: {}",
            "c.yaml:1: unknown key 'hostnam': did you mean 'hostname'?",
        ),
        ("host: {}\n\nwriter_agent:\n  sytem_message: x", "c.yaml:4: unknown key 'sytem_message'"),
        ("client_config: {}\nwriter: {}", "c.yaml:2: unknown key 'writer'"),
        ("group_chat_manager:\n  max_rounds: many", "c.yaml:2: expected `int`, got `str`"),
        ("group_chat_manager: {max_rounds: 0}", "max_rounds must be 1 or more"),
        ("client_config: {}\nhost: {port: 70000}", "70000 is no port"),
        ("client_config: {}\nhost: {hostname: ' '}", "hostname is empty"),
    ],
)
def test_mistakes_are_named_with_path_and_line(text: str, complaint: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_group_chat(text, "c.yaml")
    assert complaint in str(caught.value)


def test_on_many_machines_the_chat_names_no_models() -> None:
    team = parse_group_chat("client_config: {model: m, api_key: k}", "c.yaml").team
    assert [member.model for member in team.members] == [("openai/m",), ("openai/m",), ()]
    assert {member.model for member in each_by_its_own(team).members} == {()}
