"""The type of a provider of models: the names of its models, their addresses, their prices and how to open one.

A provider is one value in a file of this folder and one line in `models/table.py`; an installed package adds its own
as an entry point of the group `septet.providers`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec import Struct

from septet.common.values import Value
from septet.errors import NoModel
from septet.models.encoding import LoadBlob
from septet.models.http import HttpClient
from septet.ports import Model


class ModelEndpoint(Value):
    """The address and credentials of a model; `url` is the root of the service, or empty if there is none."""

    model: str
    url: str = ""
    key: str = ""
    token: str = ""
    version: str = ""


class ProviderSettings(Value):
    """The environment variables and the keys of `septet keys set`, used to resolve a name."""

    environment: Mapping[str, str]
    keys: Mapping[str, str] = {}

    def variable(self, name: str, default: str = "") -> str:
        return self.environment.get(name, "").strip() or default


class Connections(Struct, frozen=True):
    """Resources for opening models. `load_image` reads an image by its blob address; `demos` has the demo scripts."""

    http: HttpClient
    open_embedded: Callable[[str], Model]
    load_image: LoadBlob | None = None
    demos: Path = Path("demos")


class ModelChoice(Value):
    """The full name of a model and the reason for its choice."""

    name: str
    reason: str


class PriceListEntry(Value):
    """The names of a provider and its model in the public price lists."""

    provider: str
    model: str


class KeyCheck(Value):
    """A request that costs nothing and that every valid key may make."""

    url: str
    headers: Mapping[str, str]


Billing = Literal["free"] | PriceListEntry | None
"""How the model is billed: free, by a price-list entry, or None if unknown."""


class Variable(Value):
    """An environment variable of a provider, as `septet config` lists it; the value of a secret is not shown."""

    setting: str
    name: str
    default: str = ""
    secret: bool = False


def endpoint_by_name(model: str, settings: ProviderSettings) -> ModelEndpoint:
    """An endpoint that needs nothing but the model's name."""
    return ModelEndpoint(model=model)


def no_default(settings: ProviderSettings) -> ModelChoice | None:
    return None


def unknown_billing(model: str) -> Billing:
    return None


def free(model: str) -> Billing:
    return "free"


def any_model(name: str) -> bool:
    return True


def same_name(name: str) -> str:
    return name


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider of models, with the functions that resolve, open and bill its models.

    `name_pattern` shows how to write a model's name (`openai/NAME`); the word before the first `/` or `:` is the
    provider's name. `endpoint` is pure and raises NoModel if a key or an address is missing. `default` is the model to
    use if the person names none.
    `key_check` is a free request that shows whether a key is accepted. `absolute` makes a name that means the
    same in any folder. An `is_offline` provider has its answers already: it costs nothing and gets no wrappers.
    `small` models get short prompts and several candidates; models with `has_tools` call tools reliably, if
    `uses_tools` says so of their names. With a `default_model`, the provider's name alone suffices.
    """

    name_pattern: str
    about: str
    open: Callable[[ModelEndpoint, Connections], Model]
    endpoint: Callable[[str, ProviderSettings], ModelEndpoint] = endpoint_by_name
    key_variable: str | None = None
    variables: tuple[Variable, ...] = ()
    default: Callable[[ProviderSettings], ModelChoice | None] = no_default
    billing: Callable[[str], Billing] = unknown_billing
    absolute: Callable[[str], str] = same_name
    default_model: str | None = None
    key_check: Callable[[ModelEndpoint], KeyCheck] | None = None
    has_embeddings: bool = False
    is_offline: bool = False
    small: bool = False
    has_tools: bool = False
    uses_tools: Callable[[str], bool] = any_model

    @cached_property
    def name(self) -> str:
        return re.split("[/:]", self.name_pattern)[0]

    @cached_property
    def prefix(self) -> str:
        """The beginning of all its model names, including the separator."""
        return self.name_pattern[: len(self.name) + 1]

    def model_in(self, name: str) -> str | None:
        """The provider's own name for a model; None if the name belongs to another provider."""
        if name in (self.name, self.prefix):
            return self.default_model
        return name.removeprefix(self.prefix) if name.startswith(self.prefix) else None

    def key(self, settings: ProviderSettings) -> str:
        """The key; the environment variable wins over a stored key."""
        variable = settings.environment.get(self.key_variable, "") if self.key_variable else ""
        return variable or settings.keys.get(self.name, "")

    def missing_key_error(self) -> NoModel:
        return NoModel(
            f"there is no API key for {self.name}",
            f"set {self.key_variable} or run: septet login {self.name}",
        )

    def default_with_key(self, model: str, settings: ProviderSettings) -> ModelChoice | None:
        """This model, if a key for the provider is known."""
        if not self.key(settings) or self.key_variable is None:
            return None
        is_set = bool(settings.variable(self.key_variable))
        why = f"{self.key_variable} is set" if is_set else f"a key for {self.name} is stored"
        return ModelChoice(name=f"{self.prefix}{model}", reason=why)
