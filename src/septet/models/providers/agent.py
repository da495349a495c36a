"""Instead of a model: an agent of a program or of an installed package, which takes the member's turns itself."""

from septet.errors import BadConfig
from septet.models.providers.provider import Connections, ModelEndpoint, Provider, free
from septet.ports import Model

PREFIX = "agent:"


def open_agent(endpoint: ModelEndpoint, connections: Connections) -> Model:
    raise BadConfig(
        f"the agent '{endpoint.model}' is no model", "give it to a member whose turns it can take"
    )


PROVIDER = Provider(
    name_pattern=f"{PREFIX}NAME",
    about="no model, but an agent of your program or of an installed package (entry point group `septet.agents`)",
    open=open_agent,
    billing=free,
)
