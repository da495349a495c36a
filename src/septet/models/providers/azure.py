"""Azure OpenAI: the OpenAI API at another address, with a key, a token or the machine's identity."""

import logging
from urllib.parse import quote

from anyio import to_thread

from septet.errors import BadConfig, NoModel
from septet.models.credentials import Credentials, Token, bearer, header, refreshed_bearer
from septet.models.faults import AccessDenied
from septet.models.providers.openai import OpenAIModel
from septet.models.providers.provider import (
    Connections,
    ModelChoice,
    ModelEndpoint,
    PriceListEntry,
    Provider,
    ProviderSettings,
    Variable,
)

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
    # The library logs every method that it tried, which would hide the one line that matters.
    logging.getLogger("azure").addHandler(logging.NullHandler())
    try:
        token = await to_thread.run_sync(lambda: DefaultAzureCredential().get_token(SCOPE))
    except Exception as error:  # the library raises many types; all of them mean that access is denied
        raise AccessDenied(f"Azure gave no token ({type(error).__name__})") from error
    return token.token, float(token.expires_on)


def open_azure(endpoint: ModelEndpoint, connections: Connections) -> OpenAIModel:
    address = azure_address(endpoint.url, endpoint.model, endpoint.version or API_VERSION)
    credentials = azure_credentials(endpoint.key, endpoint.token)
    return OpenAIModel(address, endpoint.model, credentials, connections.http, connections.load_image)


def azure_endpoint(model: str, settings: ProviderSettings) -> ModelEndpoint:
    url = settings.variable("AZURE_OPENAI_ENDPOINT")
    if not url:
        raise NoModel(
            "the address of your Azure OpenAI resource is not known",
            "set AZURE_OPENAI_ENDPOINT to https://NAME.openai.azure.com",
        )
    return ModelEndpoint(
        url=url.rstrip("/"),
        model=model,
        key=PROVIDER.key(settings),
        token=settings.variable("AZURE_OPENAI_AD_TOKEN"),
        version=settings.variable("OPENAI_API_VERSION"),
    )


def default_deployment(settings: ProviderSettings) -> ModelChoice | None:
    deployment = settings.variable("AZURE_OPENAI_DEPLOYMENT")
    if not deployment or not settings.variable("AZURE_OPENAI_ENDPOINT"):
        return None
    return ModelChoice(
        name=f"azure/{deployment}", reason="AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_DEPLOYMENT are set"
    )


PROVIDER = Provider(
    name_pattern="azure/DEPLOYMENT",
    has_tools=True,
    about="Azure OpenAI at AZURE_OPENAI_ENDPOINT",
    open=open_azure,
    endpoint=azure_endpoint,
    key_variable="AZURE_OPENAI_API_KEY",
    variables=(
        Variable(setting="url", name="AZURE_OPENAI_ENDPOINT"),
        Variable(setting="version", name="OPENAI_API_VERSION", default=API_VERSION),
        Variable(setting="token", name="AZURE_OPENAI_AD_TOKEN", secret=True),
    ),
    default=default_deployment,
    billing=lambda model: PriceListEntry(provider="azure", model=model),
)
