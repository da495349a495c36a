"""`local/NAME`: models that this machine runs itself. What runs them is imported with the first one."""

from septet.models.providers.provider import Provider, free

DEFAULT_MODEL = "qwen2.5-coder-1.5b"
"""The first of the catalogue."""
PROVIDER = Provider(
    name_pattern="local/NAME",
    about="an embedded model, run by this program (septet[local])",
    open=lambda endpoint, connections: connections.open_embedded(endpoint.model),
    billing=free,
    default_model=DEFAULT_MODEL,
    small=True,
)
