"""`pydantic-ai:PROVIDER:NAME`: any provider that the optional library pydantic-ai supports."""

from septet.errors import NoModel
from septet.models.providers.provider import Billing, Connections, ModelEndpoint, PriceListEntry, Provider
from septet.ports import Model

FREE_PROVIDERS = ("local", "ollama")
PRICE_LISTS = {
    "google-cloud": "google",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "xai": "x-ai",
    "bedrock": "aws",
}
"""Providers whose names in the price lists differ from those in the library."""


def open_by_library(endpoint: ModelEndpoint, connections: Connections) -> Model:
    try:
        from septet.models.providers.pydantic_ai_model import open_pydantic_ai
    except ImportError as error:
        raise NoModel("pydantic-ai is not installed", "install 'septet[providers]'") from error
    return open_pydantic_ai(endpoint.model, connections.http, connections.load_image)


def billing(name: str) -> Billing:
    provider, _, model = name.partition(":")
    return (
        "free"
        if provider in FREE_PROVIDERS
        else PriceListEntry(provider=PRICE_LISTS.get(provider, provider), model=model)
    )


PROVIDER = Provider(
    name_pattern="pydantic-ai:PROVIDER:NAME",
    has_tools=True,
    about="any provider that pydantic-ai supports (septet[providers])",
    open=open_by_library,
    billing=billing,
)
