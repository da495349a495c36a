"""Azure OpenAI: the OpenAI wire under another address, let in by a key, a token or the machine's identity."""

import logging
from urllib.parse import quote

from anyio import to_thread

from septet.errors import BadConfig
from septet.models.credentials import Credentials, Token, bearer, header, refreshed_bearer
from septet.models.encoding import Loader
from septet.models.faults import AccessDenied
from septet.models.http import HttpClient
from septet.models.providers.openai import OpenAIModel

API_VERSION = "2024-10-21"
SCOPE = "https://cognitiveservices.azure.com/.default"


def azure_address(endpoint: str, deployment: str, version: str) -> str:
    path = f"openai/deployments/{quote(deployment, safe='')}/chat/completions"
    return f"{endpoint.rstrip('/')}/{path}?api-version={quote(version, safe='')}"


def azure_credentials(key: str = "", token: str = "") -> Credentials:
    """The key if there is one, else the given AD token, else whatever identity this machine has."""
    if key:
        return header("api-key", key)
    if token:
        return bearer(token)
    return refreshed_bearer(identity_token)


async def identity_token() -> Token:
    """A token of the identity that azure-identity finds: environment, managed identity, `az login`, …"""
    try:
        from azure.identity import DefaultAzureCredential
    except ImportError as error:
        raise BadConfig(
            "no key for Azure is set and azure-identity is not installed",
            "set AZURE_OPENAI_API_KEY or install 'septet[azure]'",
        ) from error
    # What the library has to say about each way that it tried would bury the one line that matters.
    logging.getLogger("azure").addHandler(logging.NullHandler())
    try:
        token = await to_thread.run_sync(lambda: DefaultAzureCredential().get_token(SCOPE))
    except Exception as error:  # the library raises many kinds, each means "not let in"
        raise AccessDenied(f"Azure gave no token ({type(error).__name__})") from error
    return token.token, float(token.expires_on)


def azure_model(
    address: str, deployment: str, credentials: Credentials, wire: HttpClient, load: Loader | None = None
) -> OpenAIModel:
    return OpenAIModel(address, deployment, credentials, wire, load)
