"""Azure OpenAI: the deployment's address, and the three ways in."""

import sys
import time

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from models.asking import ask, question

from septet.errors import BadConfig
from septet.models.credentials import Credentials, Token, refreshed_bearer
from septet.models.faults import AccessDenied
from septet.models.http import HttpClient
from septet.models.providers.azure import azure_address, azure_credentials
from septet.models.providers.openai import OpenAIModel
from septet.testing.server import MockServer, serve_mock

pytestmark = pytest.mark.anyio


async def asked_with(credentials: Credentials) -> MockServer:
    async with serve_mock() as server, HttpClient() as wire:
        address = azure_address(server.url.removesuffix("/v1"), "my deployment", "2024-10-21")
        await ask(OpenAIModel(address, "my deployment", credentials, wire), question("go"))
    return server


async def test_a_key_goes_into_its_own_header() -> None:
    seen = (await asked_with(azure_credentials(key="k"))).seen[0]
    assert seen.headers["api-key"] == "k"
    assert "authorization" not in seen.headers
    assert seen.path == "/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21"


async def test_a_directory_token_is_a_bearer() -> None:
    seen = (await asked_with(azure_credentials(token="ad-token"))).seen[0]
    assert seen.headers["authorization"] == "Bearer ad-token"
    assert "api-key" not in seen.headers


async def test_a_providers_token_is_renewed_before_it_expires() -> None:
    clock = [0.0]
    given: list[Token] = []

    async def fetch() -> Token:
        given.append((f"token {len(given) + 1}", clock[0] + 3600))
        return given[-1]

    credentials = refreshed_bearer(fetch, lambda: clock[0])
    headers: list[str] = []
    for moment in (0.0, 3000.0, 3400.0, 3500.0):
        clock[0] = moment
        headers.append((await asked_with(credentials)).seen[0].headers["authorization"])
    assert headers == ["Bearer token 1", "Bearer token 1", "Bearer token 2", "Bearer token 2"]


async def test_without_a_key_and_without_the_library_the_way_out_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(BadConfig, match="AZURE_OPENAI_API_KEY"):
        await azure_credentials()()


class NoIdentity:
    """What `DefaultAzureCredential` does on a machine that has none."""

    def get_token(self, scope: str) -> None:
        raise ClientAuthenticationError("none of them worked")


class SomeIdentity:
    def get_token(self, scope: str) -> AccessToken:
        assert scope == "https://cognitiveservices.azure.com/.default"
        return AccessToken("from-the-machine", int(time.time()) + 3600)


async def test_without_a_key_the_machines_own_identity_lets_us_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azure.identity.DefaultAzureCredential", SomeIdentity)
    seen = (await asked_with(azure_credentials())).seen[0]
    assert seen.headers["authorization"] == "Bearer from-the-machine"
    assert "api-key" not in seen.headers


async def test_a_machine_without_an_identity_is_not_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azure.identity.DefaultAzureCredential", NoIdentity)
    with pytest.raises(AccessDenied, match="Azure gave no token"):
        await azure_credentials()()
