"""`pydantic-ai:PROVIDER:NAME`: any provider that the library pydantic-ai knows. The library is optional."""

from septet.errors import NoModel
from septet.models.providers.provider import Billing, Connections, Endpoint, PriceListEntry, Provider
from septet.ports import Model

FREE = ("local", "ollama")
PRICE_LISTS = {
    "google-cloud": "google",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "xai": "x-ai",
    "bedrock": "aws",
}
"""Providers whose name in the price lists is another one than in the library."""


def open_by_library(endpoint: Endpoint, connections: Connections) -> Model:
    try:
        from septet.models.providers.pydantic_ai_model import open_pydantic_ai
    except ImportError as error:
        raise NoModel("pydantic-ai is not installed", "install 'septet[providers]'") from error
    return open_pydantic_ai(endpoint.model, connections.http, connections.load_image)


def billing(name: str) -> Billing:
    provider, _, model = name.partition(":")
    return (
        "free"
        if provider in FREE
        else PriceListEntry(provider=PRICE_LISTS.get(provider, provider), model=model)
    )


PROVIDER = Provider(
    form="pydantic-ai:PROVIDER:NAME",
    has_tools=True,
    about="any provider that pydantic-ai knows (septet[providers])",
    open=open_by_library,
    billing=billing,
)
